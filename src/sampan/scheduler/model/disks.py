"""Disks that a pod names in its own spec. Pure.

Job: a pod's volumes → disks; whether two of them are the same and two pods must not write to them
    at once; which are volumes of a CSI driver by now, that a node takes only so many of.
"""

from collections.abc import Iterable
from dataclasses import field

from sampan.api.objects import Obj, namespace_of
from sampan.api.rules.volumes.in_tree_volumes import (
    IN_TREE,
    NotTranslated,
    source_of,
    translated_inline,
)
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Disk:
    kind: str
    name: tuple[str, ...]
    read_only: bool
    monitors: frozenset[str] = frozenset()  # of a Ceph image: one in common makes it the same
    csi: tuple[str, str] | None = field(default=None, compare=False)  # driver and handle


def disks_of(pod: Obj) -> tuple[Disk, ...]:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return tuple(disk for volume in volumes for disk in _disks(volume, pod))


def conflict(disk: Disk, other: Disk) -> bool:
    """As VolumeRestrictions: readers bear each other, but for disks of one attachment only."""
    if (disk.kind, disk.name) != (other.kind, other.name):
        return False
    if disk.monitors and not disk.monitors & other.monitors:
        return False
    return not (disk.read_only and other.read_only)


def _disks(volume: Obj, pod: Obj) -> Iterable[Disk]:
    csi = _migrated(volume, pod)
    if disk := volume.get("gcePersistentDisk"):
        yield Disk("gce", (disk.get("pdName") or "",), bool(disk.get("readOnly")), csi=csi)
    elif disk := volume.get("awsElasticBlockStore"):
        # Attached to one node at a time, whoever reads.
        yield Disk("ebs", (disk.get("volumeID") or "",), False, csi=csi)
    elif csi is not None:
        yield Disk("csi", csi, True, csi=csi)  # in nobody's way
    if disk := volume.get("iscsi"):
        yield Disk("iscsi", (disk.get("iqn") or "",), bool(disk.get("readOnly")))
    if disk := volume.get("rbd"):
        name = (disk.get("pool") or "rbd", disk.get("image") or "")
        monitors = frozenset(disk.get("monitors") or ())
        yield Disk("rbd", name, bool(disk.get("readOnly")), monitors)


def _migrated(volume: Obj, pod: Obj) -> tuple[str, str] | None:
    """As upstream: of azureFile and vsphereVolume a node takes any number. One that cannot be
    translated is refused by its node."""
    source = source_of(volume)
    if not source or not IN_TREE[source].is_scheduled:
        return None
    try:
        csi = translated_inline(volume, namespace_of(pod))["spec"]["csi"]
    except NotTranslated:
        return None
    return csi["driver"], csi["volumeHandle"]
