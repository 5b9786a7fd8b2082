"""VolumeRestrictions: disks and claims that are for one pod.

Two pods that would write to one disk are not on the same node; a ReadWriteOncePod claim is for one
pod in the whole cluster.
"""

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, always_resolvable
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.disks import conflict
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.volumes import ONLY_ONE_POD

NO_DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if _is_in_use(pod, nodes):
        return np.zeros(len(nodes), np.bool_)
    return _free_of_conflicts(pod, nodes) if pod.disks else None


def reasons(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> dict[str, int]:
    """As upstream, the disks are looked at first."""
    free = _free_of_conflicts(pod, nodes)
    found = {NO_DISK: int((refused & ~free).sum()), IN_USE: int((refused & free).sum())}
    return {text: count for text, count in found.items() if count}


def _is_in_use(pod: PodShape, nodes: Snapshot) -> bool:
    for key in pod.claims:
        claim = nodes.volumes.claims.get(key)
        if claim is not None and ONLY_ONE_POD in claim.modes and nodes.claim_uses.get(key):
            return True
    return False


def _free_of_conflicts(pod: PodShape, nodes: Snapshot) -> BoolArray:
    """The work is by nodes with such disks, not by all nodes."""
    free: BoolArray = np.ones(len(nodes), np.bool_)
    if pod.disks:
        for node, held in nodes.disks_on.items():
            if any(conflict(disk, other) for disk in pod.disks for other in held):
                free[nodes.at[node]] = False
    return free


VOLUME_RESTRICTIONS = Filter("VolumeRestrictions", mask, reasons, always_resolvable)
