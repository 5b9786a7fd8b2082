"""Users of CSI volumes: which pods have which, and what is staged.

Job: note who uses what, from the first step of a mount to the end of the last unmount; found again
    on disk by the next agent.
Invariant: a volume that may be mounted for a pod has that pod as a user.
Invariant: what nobody uses and is staged is waiting to be unstaged.
Owner: CsiVolumes.
"""

from collections.abc import Iterable, Iterator

from sampan.core.fast_dataclass import dataclass, replace
from sampan.kubelet.csi import volume_data
from sampan.kubelet.csi.csi_volume import PERSISTENT, CsiVolume, unique_name
from sampan.kubelet.csi.volume_paths import CsiPaths

Key = tuple[str, str]  # driver, handle


@dataclass(frozen=True, slots=True)
class _Staged:
    volume: CsiVolume
    attachable: bool
    is_sure: bool  # this agent saw the driver stage it


class VolumeUsers:
    def __init__(self) -> None:
        self._of_pod: dict[str, dict[Key, CsiVolume]] = {}  # by uid
        self._pods: dict[Key, set[str]] = {}
        self._staged: dict[Key, _Staged] = {}
        self.labels: dict[Key, str] = {}  # of SELinux, of volumes that are mounted with one

    def read(self, paths: CsiPaths, uids: Iterable[str]) -> None:
        """What an earlier agent left. Blocking."""
        for known in volume_data.staged(paths):
            self._staged[known.volume.key] = _Staged(known.volume, known.attachable, False)
            if known.selinux_label:
                self.labels[known.volume.key] = known.selinux_label
        for uid in uids:
            for volume in volume_data.published(paths, uid):
                self.add(volume, uid)

    def add(self, volume: CsiVolume, uid: str) -> None:
        self._of_pod.setdefault(uid, {})[volume.key] = volume
        self._pods.setdefault(volume.key, set()).add(uid)

    def remove(self, volume: CsiVolume, uid: str) -> None:
        self._of_pod.get(uid, {}).pop(volume.key, None)
        if not self._of_pod.get(uid):
            self._of_pod.pop(uid, None)
        pods = self._pods.get(volume.key, set())
        pods.discard(uid)
        if not pods:
            self._pods.pop(volume.key, None)

    def of_pod(self, uid: str) -> list[CsiVolume]:
        return list(self._of_pod.get(uid, {}).values())

    def others(self, volume: CsiVolume, uid: str) -> set[str]:
        return self._pods.get(volume.key, set()) - {uid}

    def stages(self, volume: CsiVolume, *, attachable: bool) -> None:
        """It is about to be staged, or will have to be unstaged in any case."""
        known = self._staged.get(volume.key)
        is_sure = known is not None and known.is_sure
        self._staged[volume.key] = _Staged(volume, attachable, is_sure)

    def staged(self, volume: CsiVolume) -> None:
        self._staged[volume.key] = replace(self._staged[volume.key], is_sure=True)

    def is_staged(self, volume: CsiVolume) -> bool:
        """For sure: what an earlier agent staged is staged once more."""
        known = self._staged.get(volume.key)
        return known is not None and known.is_sure

    def unstaged(self, volume: CsiVolume) -> None:
        self._staged.pop(volume.key, None)

    def idle(self) -> Iterator[CsiVolume]:
        """Staged, and nobody's."""
        for key, known in list(self._staged.items()):
            if key not in self._pods:
                yield known.volume

    def is_idle(self, volume: CsiVolume) -> bool:
        return volume.key in self._staged and volume.key not in self._pods

    def in_use(self) -> tuple[str, ...]:
        """For the node's status: attachable volumes that must not be detached now."""
        return tuple(
            sorted(
                unique_name(known.volume)
                for known in self._staged.values()
                if known.attachable and known.volume.mode == PERSISTENT
            )
        )
