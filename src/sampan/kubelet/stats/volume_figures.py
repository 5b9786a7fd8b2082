"""Figures of a pod's volumes: what they hold, for /stats/summary and kubelet_volume_stats_*.

Job: ask directories, file systems and CSI drivers (NodeGetVolumeStats); remember it for a minute,
    as upstream does.
Invariant: nothing is measured while nobody asks; what cannot be measured is left out.
Invariant: a driver that does not answer holds nobody up for long: the old figures are shown.
Owner: StatsSummary, and who renders /metrics.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.api.errors import ApiError
from sampan.api.features import enabled
from sampan.api.objects import Obj, name_of, namespace_of, spec_of, uid_of
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.api.rules.volumes.in_tree_volumes import (
    IN_TREE,
    NotTranslated,
    source_of,
    translated_inline,
)
from sampan.client.contract import Client
from sampan.core.bounded import Recent
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.paths import pod_directory
from sampan.kubelet.stats.local_storage import taken_by
from sampan.kubelet.volumes.plan import NFS_PLUGIN, PLUGINS
from sampan.kubelet.volumes.references import ephemeral_claim, kind_of, volumes_of

if TYPE_CHECKING:
    from sampan.kubelet.csi.driver_calls import VolumeStats

log = get_logger(__name__)

HEALTH = "CSIVolumeHealth"
FRESH_SECONDS = 60.0  # as upstream's volumeStatsAggPeriod
PATIENCE_SECONDS = 5.0
_MOST_PODS, _MOST_VOLUMES = 1000, 10_000


@dataclass(frozen=True, slots=True)
class VolumeFigures:
    name: str
    claim: str = ""
    available: int = 0
    capacity: int = 0
    used: int = 0
    inodes: int = 0
    inodes_free: int = 0
    inodes_used: int = 0
    abnormal: bool | None = None  # None: nobody says, or nobody wants to know (CSIVolumeHealth)

    def shown(self, namespace: str, now: str) -> Obj:
        """As a summary has it."""
        found: Obj = {
            "time": now,
            "availableBytes": self.available,
            "capacityBytes": self.capacity,
            "usedBytes": self.used,
            "inodesFree": self.inodes_free,
            "inodes": self.inodes,
            "inodesUsed": self.inodes_used,
            "name": self.name,
        }
        if self.claim:
            found["pvcRef"] = {"name": self.claim, "namespace": namespace}
        if self.abnormal is not None:
            found["volumeHealthStats"] = {"abnormal": self.abnormal}
        return found


# Of a pod by its uid: by the names of PersistentVolumes and of inline volumes.
CsiStats = Callable[[str], Awaitable["Mapping[str, VolumeStats]"]]
_GAUGES = (
    ("capacity_bytes", "Capacity in bytes of the volume", "capacity"),
    ("available_bytes", "Number of available bytes in the volume", "available"),
    ("used_bytes", "Number of used bytes in the volume", "used"),
    ("inodes", "Maximum number of inodes in the volume", "inodes"),
    ("inodes_free", "Number of free inodes in the volume", "inodes_free"),
    ("inodes_used", "Number of used inodes in the volume", "inodes_used"),
    ("health_status_abnormal", "Abnormal volume health status. The count is either 1 or 0. 1 "
     "indicates the volume is unhealthy, 0 indicates volume is healthy", "abnormal"),
)  # fmt: skip


async def no_csi_stats(_uid: str) -> "Mapping[str, VolumeStats]":
    """Of a node without drivers."""
    return {}


class VolumeStatsReader:
    def __init__(
        self,
        client: Client,
        root_dir: str,
        csi: CsiStats,
        clock: Clock,
        tell: Callable[[Obj, str, str], None] = lambda *_event: None,
    ) -> None:
        """`tell`: a warning about a pod: its reason and its message."""
        self._client, self._root, self._csi, self.clock = client, root_dir, csi, clock
        self._tell = tell
        self._known: Recent[str, tuple[float, list[VolumeFigures]]] = Recent(_MOST_PODS)
        self._volumes: Recent[tuple[str, str], Obj] = Recent(_MOST_VOLUMES)  # uid and claim → PV

    async def of(self, pod: Obj) -> list[VolumeFigures]:
        uid, now = uid_of(pod), self.clock.monotonic()
        known = self._known.get(uid)
        if known is not None and now - known[0] < FRESH_SECONDS:
            return known[1]
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                found = [item async for item in self._measured(pod)]
        except TimeoutError:
            log.debug("volumes were not measured in time", uid=uid)
            return known[1] if known is not None else []
        self._known[uid] = (now, found)
        return found

    async def metrics(self, pods: Iterable[Obj]) -> str:
        """As upstream's /metrics: of volumes that are claimed."""
        metrics, labels = Metrics(), ("namespace", "persistentvolumeclaim")
        gauges = [
            (metrics.gauge(f"kubelet_volume_stats_{name}", text, labels), field)
            for name, text, field in _GAUGES
        ]
        told = False
        for pod in pods:
            if not any(claim_of(pod, volume) for volume in volumes_of(pod)):
                continue
            for figures in await self.of(pod):
                for gauge, field in gauges if figures.claim else ():
                    amount = getattr(figures, field)
                    if amount is not None:
                        gauge.set(float(amount), namespace_of(pod), figures.claim)
                        told = True
        return metrics.render() if told else ""

    async def _measured(self, pod: Obj) -> AsyncIterator[VolumeFigures]:
        uid = uid_of(pod)
        folder = f"{pod_directory(uid, self._root)}/volumes"
        stats: Mapping[str, VolumeStats] | None = None
        for volume in volumes_of(pod):
            name, kind, claim = volume.get("name", ""), kind_of(volume), claim_of(pod, volume)
            found: VolumeFigures | None = None
            if kind in PLUGINS:
                found = await asyncio.to_thread(_walked, f"{folder}/{PLUGINS[kind]}/{name}", name)
            elif kind == "nfs":
                place = f"{folder}/{NFS_PLUGIN}/{name}"
                found = await asyncio.to_thread(_of_disk, place, name, "")
            elif claim or _is_driven(kind, {}):
                source = await self._volume(pod, claim) if claim else {}
                spec = spec_of(source)
                if spec.get("local"):
                    place = spec["local"].get("path", "")
                    found = await asyncio.to_thread(_of_disk, place, name, claim)
                elif spec.get("nfs"):
                    place = f"{folder}/{NFS_PLUGIN}/{source['metadata']['name']}"
                    found = await asyncio.to_thread(_of_disk, place, name, claim)
                elif _is_driven(kind, spec):
                    stats = await self._csi(uid) if stats is None else stats
                    key = source.get("metadata", {}).get("name") or _name_of(volume, pod)
                    found = _of_driver(stats.get(key), name, claim)
                    self._warn(pod, name, stats.get(key))
            if found is not None:
                yield found

    def _warn(self, pod: Obj, name: str, stats: "VolumeStats | None") -> None:
        if stats is not None and stats.abnormal and enabled(HEALTH):
            self._tell(pod, "VolumeConditionAbnormal", f"Volume {name}: {stats.message}")

    async def _volume(self, pod: Obj, claim: str) -> Obj:
        key = (uid_of(pod), claim)
        known = self._volumes.get(key)
        if known is not None:
            return known
        try:
            held = await self._client.get(PERSISTENT_VOLUME_CLAIMS, namespace_of(pod), claim)
            name = spec_of(held).get("volumeName") or ""
            found = await self._client.get(PERSISTENT_VOLUMES, "", name) if name else {}
        except ApiError as error:
            log.debug("claim of a volume was not read", claim=claim, error=error)
            return {}
        if found:
            self._volumes[key] = found
        return found


def _is_driven(kind: str, spec: Obj) -> bool:
    """Does a CSI driver have the volume: that of a pod, or by a PersistentVolume's spec?"""
    return kind == "csi" or kind in IN_TREE or bool(spec.get("csi") or source_of(spec))


def _name_of(volume: Obj, pod: Obj) -> str:
    """As its driver is asked about it."""
    if kind_of(volume) in IN_TREE:
        try:
            return name_of(translated_inline(volume, namespace_of(pod)))
        except NotTranslated:
            return ""
    return str(volume.get("name", ""))


def claim_of(pod: Obj, volume: Obj) -> str:
    """Empty: there is none."""
    if volume.get("ephemeral"):
        return ephemeral_claim(pod, volume.get("name", ""))
    return str((volume.get("persistentVolumeClaim") or {}).get("claimName") or "")


def _of_disk(place: str, name: str, claim: str) -> VolumeFigures | None:
    """Of the file system that it is."""
    try:
        found = os.statvfs(place)
    except OSError:
        return None
    return VolumeFigures(
        name,
        claim,
        found.f_bavail * found.f_frsize,
        found.f_blocks * found.f_frsize,
        (found.f_blocks - found.f_bfree) * found.f_frsize,
        found.f_files,
        found.f_ffree,
        found.f_files - found.f_ffree,
    )


def _walked(place: str, name: str) -> VolumeFigures | None:
    """Of a directory on the node's disk, or in its memory."""
    disk = _of_disk(place, name, "")
    if disk is None:
        return None
    taken = taken_by(Path(place))
    return VolumeFigures(
        name, "", disk.available, disk.capacity, taken.size, disk.inodes, disk.inodes_free,
        taken.files,
    )  # fmt: skip


def _of_driver(stats: "VolumeStats | None", name: str, claim: str) -> VolumeFigures | None:
    if stats is None or stats.bytes is None:
        return None
    space, inodes = stats.bytes, stats.inodes
    return VolumeFigures(
        name,
        claim,
        space.available,
        space.total,
        space.used,
        inodes.total if inodes is not None else 0,
        inodes.available if inodes is not None else 0,
        inodes.used if inodes is not None else 0,
        stats.abnormal if enabled(HEALTH) else None,
    )
