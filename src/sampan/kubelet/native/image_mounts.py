"""Directories of images at paths of a container: image volumes, and the volumes that its own image
names.

Job: a container's images → its mounts, each with a directory of the node.
Invariant: an image volume cannot be written to; what an image names is the container's own, with
    what the image has there, also where the root cannot be written to.
"""

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import Mount, RuntimeFailure
from sampan.kubelet.native.root_filesystem import directory_inside, mapped_layers, mount_image
from sampan.runtime.images.image_store import StoredImage

_COPY_SECONDS = 600.0
_FAILED = "ImageVolumeMountFailed"


@dataclass(frozen=True, slots=True)
class UnpackedImage:
    image: StoredImage
    lowers: Sequence[Path]  # the lowest first


@dataclass(frozen=True, slots=True)
class ContainerImages:
    own: UnpackedImage
    volumes: Mapping[str, UnpackedImage]  # by the id that its mounts have

    def diff_ids(self) -> tuple[str, ...]:
        every = (self.own, *self.volumes.values())
        return tuple(dict.fromkeys(name for found in every for name in found.image.config.diff_ids))


@dataclass(frozen=True, slots=True)
class BundlePlace:
    directory: Path  # of the container
    root: Path  # mounted
    users: Path | None = None  # where those of a pod with users of its own are pinned
    first_user: int = 0  # its user 0


def mounts_of(
    place: BundlePlace, mounts: Sequence[Mount], images: ContainerImages
) -> tuple[Mount, ...]:
    """Blocking. Raises OSError, RuntimeFailure."""
    found = [
        _image_volume(place, str(number), mount, images) if mount.image else mount
        for number, mount in enumerate(mounts)
    ]
    given = {os.path.normpath(mount.container_path) for mount in mounts}
    for path in images.own.image.config.volumes:
        if os.path.normpath(path) not in given:
            found.append(_own_volume(place, path))
    return tuple(found)


def _image_volume(place: BundlePlace, name: str, mount: Mount, images: ContainerImages) -> Mount:
    lowers = images.volumes[mount.image].lowers
    try:
        if place.users is None:
            volume = mount_image(place.directory, name, lowers)
        else:
            with mapped_layers(place.directory, lowers, place.users) as mapped:
                volume = mount_image(place.directory, name, mapped)
        source = str(volume)
        if mount.image_sub_path:
            source = directory_inside(volume, mount.image_sub_path)
    except OSError as error:
        raise RuntimeFailure(
            f"failed to mount image {mount.image}: {error}", reason=_FAILED
        ) from error
    return replace(mount, host_path=source, read_only=True)


def _own_volume(place: BundlePlace, path: str) -> Mount:
    name = hashlib.sha256(path.encode()).hexdigest()[:16]
    volume = place.directory / "own-volumes" / name
    volume.mkdir(parents=True)
    if place.first_user:
        os.chown(volume, place.first_user, place.first_user)
    try:
        source = directory_inside(place.root, path.strip("/") or ".")
    except (FileNotFoundError, NotADirectoryError):
        return Mount(path, str(volume))
    try:
        subprocess.run(
            ["cp", "--archive", "--", f"{source}/.", str(volume)],
            check=True, capture_output=True, text=True, timeout=_COPY_SECONDS,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        raise RuntimeFailure(
            f"the image's volume {path} cannot be copied: {error.stderr}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RuntimeFailure(f"the image's volume {path} takes too long to copy") from error
    return Mount(path, str(volume))
