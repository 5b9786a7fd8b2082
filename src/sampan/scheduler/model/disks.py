"""Disks that a pod names in its own spec and that two pods must not write to at once. Pure.

Job: a pod's volumes → disks; whether two of them are the same and in each other's way.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Disk:
    kind: str
    name: tuple[str, ...]
    read_only: bool
    monitors: frozenset[str] = frozenset()  # of a Ceph image: one in common makes it the same


def disks_of(pod: Obj) -> tuple[Disk, ...]:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return tuple(disk for volume in volumes for disk in _disks(volume))


def conflict(disk: Disk, other: Disk) -> bool:
    """As VolumeRestrictions: readers bear each other, but for disks of one attachment only."""
    if (disk.kind, disk.name) != (other.kind, other.name):
        return False
    if disk.monitors and not disk.monitors & other.monitors:
        return False
    return not (disk.read_only and other.read_only)


def _disks(volume: Obj) -> Iterable[Disk]:
    if disk := volume.get("gcePersistentDisk"):
        yield Disk("gce", (disk.get("pdName") or "",), bool(disk.get("readOnly")))
    if disk := volume.get("awsElasticBlockStore"):
        # Attached to one node at a time, whoever reads.
        yield Disk("ebs", (disk.get("volumeID") or "",), False)
    if disk := volume.get("iscsi"):
        yield Disk("iscsi", (disk.get("iqn") or "",), bool(disk.get("readOnly")))
    if disk := volume.get("rbd"):
        name = (disk.get("pool") or "rbd", disk.get("image") or "")
        monitors = frozenset(disk.get("monitors") or ())
        yield Disk("rbd", name, bool(disk.get("readOnly")), monitors)
