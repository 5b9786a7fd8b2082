"""Volumes of a pod, as the steps of the pod ask for them.

Job: the questions (can they be had, make them ready, keep them up to date, take them away), and
    the values that go back and forth.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import Mount
from sampan.kubelet.contracts.verdict import Verdict

Objects = Mapping[tuple[str, str], Obj | None]  # (kind, name) → the object; None: not there


class VolumeFailure(Exception):
    """A volume is not ready; the message goes into an event of the given reason (none: no event),
    and it is tried again; or, with a verdict, the pod is refused."""

    def __init__(
        self, message: str, *, reason: str = "FailedMount", verdict: Verdict | None = None
    ) -> None:
        super().__init__(message)
        self.reason, self.verdict = reason, verdict


class SubPathFailure(Exception):
    """A subPath cannot be had; the message goes into the container's status."""


@dataclass(frozen=True, slots=True)
class MountedVolume:
    host_path: str
    read_only: bool = False  # even where the container's mount does not ask for it
    image: str = ""  # the runtime mounts it itself, and host_path is empty
    relabel: bool = False  # it is the node agent's own, and may get a container's SELinux label
    device: str = ""  # a block device instead of a directory: its path on the node


class Volumes(Protocol):
    async def objects(self, pod: Obj) -> Objects:
        """The config maps, secrets and claims that the pod's volumes and environments refer to;
        when a config map or secret changes, the pod's worker is woken. Raises VolumeFailure."""

    async def check(self, pod: Obj, objects: Objects) -> None:
        """Whatever can be known before anything is done for the pod. Raises VolumeFailure."""

    async def prepare(self, pod: Obj, objects: Objects) -> Mapping[str, MountedVolume]:
        """Volume name → where it is, for every volume of the pod. Raises VolumeFailure."""

    async def resolve(self, pod: Obj, container: str, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        """The mounts with every sub_path replaced by a host path that cannot lead out of its
        volume. Raises SubPathFailure."""

    async def read(self, volume: MountedVolume, path: str) -> str | None:
        """A small file in a volume, found without leaving it; None where it cannot be read."""

    async def refresh(self, pod: Obj) -> None:
        """Bring a running pod's volumes up to date; does nothing where nothing has changed.
        Raises VolumeFailure."""

    def next_refresh(self, uid: str) -> float | None:
        """The wall time at which `refresh` is due although nothing has changed."""

    async def clean_up(self, uid: str) -> None:
        """Unmount and remove all that belongs to the pod; nothing left is fine. Raises
        VolumeFailure."""

    async def remove_orphans(self, is_known: Callable[[str], bool]) -> None:
        """Clean up after pods that nobody knows any more."""
