"""Where volumes come in: what the node agent asks for before a pod's containers are made.

Job: the two questions (make them ready, take them away), and the answer as long as there are no
    volumes: a clear refusal.
"""

from collections.abc import Mapping
from typing import Protocol

from sampan.api.objects import Obj
from sampan.kubelet.spec import spec_of

Objects = Mapping[tuple[str, str], Obj | None]


class VolumeFailure(Exception):
    """A volume is not ready; the message goes into a FailedMount event, and it is tried again."""


class Volumes(Protocol):
    async def prepare(self, pod: Obj, objects: Objects) -> Mapping[str, str]:
        """Volume name → host path, for every volume of the pod. Raises VolumeFailure."""

    async def clean_up(self, uid: str) -> None:
        """Unmount and remove all that belongs to the pod; nothing left is fine."""


class NoVolumes:
    async def prepare(self, pod: Obj, objects: Objects) -> Mapping[str, str]:
        for volume in spec_of(pod).get("volumes") or ():
            kind = next((key for key in volume if key != "name"), "emptyDir")
            raise VolumeFailure(
                f'MountVolume.SetUp failed for volume "{volume.get("name")}" : '
                f"volumes of type {kind} are not supported by this node yet"
            )
        return {}

    async def clean_up(self, uid: str) -> None:
        return None
