"""Volumes that are images: pulled like a container's, mounted by the runtime itself. Pure.

Job: which volumes of a pod they are, and how each is pulled; the refusal where no runtime can.
"""

from sampan.api.objects import Obj, spec_of
from sampan.kubelet.contracts.runtime import RuntimeFeatures
from sampan.kubelet.contracts.volumes_hook import VolumeFailure


def image_volumes(pod: Obj) -> dict[str, Obj]:
    """Volume name → what the puller needs to know, in the form of a container."""
    return {
        volume.get("name", ""): {
            "name": volume.get("name", ""),
            "image": volume["image"].get("reference") or "",
            "imagePullPolicy": volume["image"].get("pullPolicy") or "",
        }
        for volume in spec_of(pod).get("volumes") or ()
        if volume.get("image")
    }


def check_image_volumes(pod: Obj, features: RuntimeFeatures) -> None:
    """Raises VolumeFailure."""
    first = next(iter(image_volumes(pod)), None)
    if first is not None and not features.image_volumes:
        raise VolumeFailure(
            f'MountVolume.SetUp failed for volume "{first}" : image volumes need a container '
            "runtime that mounts images; this node's does not"
        )


def mounted_by(container: Obj) -> set[str]:
    """The volumes that a container mounts."""
    return {mount.get("name", "") for mount in container.get("volumeMounts") or ()}
