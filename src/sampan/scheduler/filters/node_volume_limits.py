"""NodeVolumeLimits: a CSI driver attaches only so many volumes to a node, and none where it is not.

The work is by nodes that have a limit for one of the pod's drivers, not by all nodes.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, always_resolvable
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.disks import Disk
from sampan.scheduler.model.pod_info import PodShape


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    wanted = {*nodes.volumes.csi_of(pod.claims), *_own(pod.disks)}
    if not wanted:
        return None
    drivers = {driver for driver, _ in wanted}
    allowed: BoolArray = ~_without(_needed(pod, nodes), nodes)
    for node, limits in nodes.volumes.limits.items():
        at = nodes.at.get(node)
        if at is None or not drivers & limits.keys():
            continue
        used = {
            handle
            for claim in nodes.claims_on.get(node, {})
            for handle in nodes.volumes.csi_of((claim,))
        }
        used |= _own(nodes.disks_on.get(node, ()))
        # As upstream: what is still attached counts, too, even where the pod wants just that.
        there = used | set(nodes.volumes.attached_to(node))
        for driver in drivers & limits.keys():
            new = sum(item == driver for item, _ in wanted - used)
            if new and new + sum(item == driver for item, _ in there) > limits[driver]:
                allowed[at] = False
    return allowed


def _own(disks: Iterable[Disk]) -> set[tuple[str, str]]:
    """Of a pod's own spec, not behind a claim: disks of in-tree plugins."""
    return {disk.csi for disk in disks if disk.csi is not None}


def reasons(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> dict[str, int]:
    """A driver that is missing comes first, as upstream looks."""
    found: dict[str, int] = {}
    left = refused
    for driver in _needed(pod, nodes):
        missing = left & _without([driver], nodes)
        if count := int(missing.sum()):
            found[f"{driver} CSI driver is not installed on the node"] = count
        left = left & ~missing
    if count := int(left.sum()):
        found["node(s) exceed max volume count"] = count
    return found


def _needed(pod: PodShape, nodes: Snapshot) -> list[str]:
    """Drivers of the pod's volumes that let it go only where they are."""
    if not nodes.volumes.needed:
        return []
    wanted = {*nodes.volumes.csi_of(pod.claims), *_own(pod.disks)}
    drivers = {driver for driver, _ in wanted}
    return sorted(drivers & nodes.volumes.needed)


def _without(drivers: Sequence[str], nodes: Snapshot) -> BoolArray:
    """Nodes that lack one of them."""
    lacking: BoolArray = np.full(len(nodes), bool(drivers), np.bool_)
    if not drivers:
        return lacking
    for node, installed in nodes.volumes.installed.items():
        at = nodes.at.get(node)
        if at is not None and installed.issuperset(drivers):
            lacking[at] = False
    return lacking


NODE_VOLUME_LIMITS = Filter("NodeVolumeLimits", mask, reasons, always_resolvable)
