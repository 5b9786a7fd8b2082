"""Archives of images, opened: `docker save`, OCI layouts in a tar.

Job: find what is in one: its members, its documents, and the names of its images.
Invariant: what a document says is as large as a document may be, and of the type that it should be.
Blocking: to be called in a thread.
"""

import contextlib
import json
import lzma
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from sampan.core.fast_dataclass import dataclass
from sampan.runtime.images import manifests
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.layer import TAR_ERRORS, StrictEntry

CONTAINERD_NAME = "io.containerd.image.name"
STANDARD_NAME = "org.opencontainers.image.ref.name"
DOCKER_NAME = "RepoTags"
_MOST_MEMBERS = 100_000  # of an image there are a few for each of its layers


@dataclass(frozen=True, slots=True)
class ImageName:
    """`place`: which of the three said so."""

    written: str
    place: str


class Archive:
    """One open archive; members are found by name, `./` or not."""

    def __init__(self, opened: tarfile.TarFile, path: Path) -> None:
        """Raises ImageError, and what damaged archives raise."""
        self._tar, self.path = opened, path
        self._members: dict[str, tarfile.TarInfo] = {}
        for member in opened:
            self._members[member.name.removeprefix("./")] = member
            if len(self._members) > _MOST_MEMBERS:
                raise ImageError(f"{path} has more than {_MOST_MEMBERS} entries")

    def has(self, name: str) -> bool:
        return name in self._members

    def open(self, name: str) -> tuple[IO[bytes], int]:
        """Docker writes a layer that it has twice as a link to the first."""
        member = self._members.get(name)
        for _ in range(8):
            if member is None or member.isreg():
                break
            target = member.linkname.removeprefix("./")
            member = self._members.get(target) or self._members.get(str(Path(name).parent / target))
        opened = self._tar.extractfile(member) if member is not None and member.isreg() else None
        if member is None or opened is None:
            raise ImageError(f"{self.path} lacks {name}")
        return opened, member.size

    def read(self, name: str) -> bytes:
        opened, size = self.open(name)
        if size > manifests.MOST_JSON_BYTES:
            raise ImageError(f"{name} of {self.path} is too large")
        with opened:
            return opened.read()


@contextlib.contextmanager
def opened_archive(path: Path) -> Iterator[Archive]:
    """Raises ImageError, whatever is wrong with the file."""
    try:
        with tarfile.open(path, tarinfo=StrictEntry) as opened:
            yield Archive(opened, path)
    except FileNotFoundError as error:
        raise ImageError(f"{path} is not an image archive: {error}") from error
    except OSError as error:
        raise ImageError(f"{path} cannot be imported: {error}") from error
    except (*TAR_ERRORS, zlib.error, lzma.LZMAError) as error:
        raise ImageError(f"{path} is not an image archive: {error}") from error


def names_in(path: Path) -> list[ImageName]:
    """Of the images in an archive of either kind. Raises ImageError."""
    with opened_archive(path) as archive:
        if archive.has("index.json"):
            names = [name for entry in layout_entries(archive) for name in names_of(entry)]
            if names or not archive.has("manifest.json"):
                return names
        return [
            ImageName(str(tag), DOCKER_NAME)
            for entry in docker_entries(archive)
            for tag in entry.get(DOCKER_NAME) or ()
        ]


def layout_entries(archive: Archive) -> Sequence[dict[str, Any]]:
    """What index.json lists. Raises ImageError."""
    try:
        index = manifests.document(archive.read("index.json"), "index")
        return _objects(manifests.listed(index, "manifests"), "index.json")
    except ImageError as error:
        raise _no_archive(archive, error) from error


def names_of(entry: dict[str, Any]) -> list[ImageName]:
    annotations = entry.get("annotations") or {}
    if not isinstance(annotations, dict):
        return []
    full, standard = annotations.get(CONTAINERD_NAME), annotations.get(STANDARD_NAME)
    if isinstance(full, str) and full:
        return [ImageName(full, CONTAINERD_NAME)]
    if isinstance(standard, str) and ("/" in standard or ":" in standard):
        # skopeo puts the whole name where the standard has only the tag.
        return [ImageName(standard, STANDARD_NAME)]
    return []


def docker_entries(archive: Archive) -> Sequence[dict[str, Any]]:
    """What manifest.json lists. Raises ImageError."""
    if not archive.has("manifest.json"):
        raise _no_archive(archive, "it has neither index.json nor manifest.json")
    try:
        found = _objects(json.loads(archive.read("manifest.json")), "manifest.json")
    except (ImageError, ValueError, RecursionError) as error:
        raise _no_archive(archive, error) from error
    for entry in found:
        for name in ("Layers", DOCKER_NAME):
            if not isinstance(entry.get(name) or [], list):
                raise _no_archive(archive, f"{name} in manifest.json of the archive is no list")
    return found


def _objects(found: Any, what: str) -> Sequence[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ImageError(f"{what} of the archive is no list of images")
    return found


def _no_archive(archive: Archive, why: object) -> ImageError:
    return ImageError(f"{archive.path} is not an image archive: {why}")


def blob_path(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"
