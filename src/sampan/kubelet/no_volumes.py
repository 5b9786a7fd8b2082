"""A node without volumes: what it answers to pods that want some.

Job: refuse every volume by name and type; nothing else to do.
"""

from collections.abc import Callable, Mapping, Sequence

from sampan.api.objects import Obj
from sampan.kubelet.runtime import Mount
from sampan.kubelet.spec import spec_of
from sampan.kubelet.volumes_hook import MountedVolume, Objects, VolumeFailure


class NoVolumes:
    def check(self, pod: Obj, objects: Objects) -> None:
        for volume in spec_of(pod).get("volumes") or ():
            kind = next((key for key in volume if key != "name"), "emptyDir")
            raise VolumeFailure(
                f'MountVolume.SetUp failed for volume "{volume.get("name")}" : '
                f"volumes of type {kind} are not supported by this node yet"
            )

    async def prepare(self, pod: Obj, objects: Objects) -> Mapping[str, MountedVolume]:
        self.check(pod, objects)
        return {}

    async def resolve(self, pod: Obj, container: str, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        return tuple(mounts)

    async def refresh(self, pod: Obj) -> None:
        return None

    def next_refresh(self, uid: str) -> float | None:
        return None

    async def clean_up(self, uid: str) -> None:
        return None

    async def remove_orphans(self, is_known: Callable[[str], bool]) -> None:
        return None
