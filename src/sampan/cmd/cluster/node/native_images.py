"""`sampan image` for a cluster whose node has no containerd: the images are files of its own."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node import native
from sampan.cmd.cluster.node.runtime_choice import runtime_before
from sampan.core.clock import SystemClock
from sampan.kubelet.contracts.runtime import Image
from sampan.kubelet.images.archive import ArchiveError
from sampan.kubelet.images.reference import InvalidReference, parse
from sampan.kubelet.native.native_runtime import image_of
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.image_store import ImageStore
from sampan.runtime.images.save import save_archive


def is_native(data_dir: Path) -> bool:
    return runtime_before(DataDir(data_dir)) == "native"


class NativeImages:
    def __init__(self, data_dir: Path) -> None:
        self._images = native.node_images(data_dir, SystemClock())
        self._store: ImageStore = self._images.store

    def import_file(self, file: Path) -> list[str]:
        try:
            names = native.import_file(self._store, file)
        except (ImageError, InvalidReference) as error:
            raise ArchiveError(str(error)) from error
        if not names:
            raise ArchiveError(
                f"{file} does not say what its image is called: save it again with a name "
                "(docker save NAME:TAG, skopeo copy … oci-archive:FILE:NAME:TAG)"
            )
        return names

    def images(self) -> list[Image]:
        return [image_of(stored) for stored in self._store.images()]

    def remove(self, image: Image, names: Sequence[str]) -> None:
        """These names of it; the node takes the files away with its next removal."""
        found = self._store.find(image.id)
        if found is not None:
            self._store.remove(found, names)

    def save(self, name: str, file: Path) -> int:
        """How many bytes the archive has. It is whole, or not there."""
        try:
            full = parse(name).full_name()
            found = self._store.find(full) or self._store.find(name)
            if found is None:
                raise ArchiveError(f"there is no image {name}: `sampan image list`")
            names = [full] if full in found.names else list(found.names)
            return save_archive(self._store, found, names, file)
        except (ImageError, InvalidReference, OSError) as error:
            raise ArchiveError(f"{name} cannot be saved: {error}") from error

    def pull(self, name: str, came: Callable[[int], None]) -> Image:
        """`came`: how many bytes, as they come."""
        return asyncio.run(self._pull(name, came))

    async def _pull(self, name: str, came: Callable[[int], None]) -> Image:
        try:
            return image_of(await self._images.pull(name, None, came))
        except (ImageError, InvalidReference) as error:
            raise ArchiveError(str(error)) from error
