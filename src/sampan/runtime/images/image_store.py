"""The images of a node: which name is which image, and its layers as directories.

Job: names → manifests → layers; unpack each layer once; forget what nothing names any more.
Invariant: a name leads to an image whose parts are all in the content store.
Invariant: a layer's directory is whole: unpacked beside it, forced to the disk, then renamed.
Invariant: what is about to be named (a pull) or still mounted (a container) is never removed.
Owner: one per node; files of one directory, which is read again when another process changed it.
"""

import asyncio
import contextlib
import errno
import json
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.remove_tree import remove_tree
from sampan.runtime.images import manifests
from sampan.runtime.images.content import (
    ContentStore,
    Descriptor,
    ImageError,
    digest_of,
)
from sampan.runtime.images.manifests import ImageConfig, Manifest

_UNPACK_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class StoredImage:
    id: str  # the digest of its configuration, as everywhere
    names: tuple[str, ...]
    repo_digests: tuple[str, ...]
    size: int
    manifest: Manifest
    config: ImageConfig
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class _Name:
    """The content of one file."""

    name: str
    manifest: str
    repo_digest: str
    pinned: bool


class ImageStore:
    def __init__(self, root: Path) -> None:
        self.content = ContentStore(root)
        self._names, self._layers = root / "names", root / "layers"
        self._unpacking = root / "unpacking"
        for directory in (self._names, self._layers, self._unpacking):
            directory.mkdir(exist_ok=True)
        self._seen = (-1, -1)  # the directory of names when it was last read
        self._images: dict[str, StoredImage] = {}
        self._by_name: dict[str, str] = {}
        self._reserved: list[set[str]] = []
        self._turns: dict[str, asyncio.Lock] = {}  # by layer

    def remove_unfinished(self) -> None:
        """At a start: what was being made when the last process ended."""
        self.content.remove_unfinished()
        for left in self._unpacking.iterdir():
            _remove_if_there(left)

    # ---- names

    def images(self) -> list[StoredImage]:
        self._refresh()
        return list(self._images.values())

    def find(self, name: str) -> StoredImage | None:
        """By id (with or without `sha256:`), full name, or repository and digest."""
        self._refresh()
        found = self._by_name.get(name) or self._by_name.get(f"sha256:{name}")
        return self._images.get(found) if found else None

    def put(
        self, name: str, manifest: Descriptor, *, repo_digest: str = "", pinned: bool = False
    ) -> StoredImage:
        """All parts are in the store by now; the name is new or moves. Raises ImageError."""
        self._read(manifest.digest)
        entry = {
            "name": name, "manifest": manifest.digest, "repoDigest": repo_digest, "pinned": pinned,
        }  # fmt: skip
        file = self._file(name)
        fresh = file.with_suffix(".new")
        with fresh.open("w") as opened:
            json.dump(entry, opened)
            opened.flush()
            os.fsync(opened.fileno())
        fresh.replace(file)
        self._seen = (-1, -1)
        found = self.find(name)
        assert found is not None
        return found

    def remove(self, image: StoredImage, names: Collection[str] = ()) -> None:
        """All of its names, or these; what is left without a name goes with the next collect."""
        for name in names or (*image.names, *image.repo_digests, image.id):
            self._file(name).unlink(missing_ok=True)
        self._seen = (-1, -1)

    def collect(self, mounted: Collection[str]) -> None:
        """Blobs and layers (`mounted`: those that containers stand on) that no image has."""
        self._refresh()
        keep = set().union(*self._reserved) if self._reserved else set()
        layers = {diff_id.removeprefix("sha256:") for diff_id in mounted}
        for image in self._images.values():
            keep |= {image.id, *(layer.digest for layer in image.manifest.layers)}
            layers |= {diff_id.removeprefix("sha256:") for diff_id in image.config.diff_ids}
        keep |= {entry.manifest for entry in self._entries()}
        for digest in self.content.digests() - keep:
            self.content.remove(digest)
        if not self._reserved:
            for directory in self._layers.iterdir():
                if directory.name not in layers:
                    _remove_if_there(directory)

    @contextlib.contextmanager
    def reserving(self) -> Iterator[set[str]]:
        """Digests that are put in here are not collected meanwhile."""
        digests: set[str] = set()
        self._reserved.append(digests)
        try:
            yield digests
        finally:
            self._reserved.remove(digests)

    def _file(self, name: str) -> Path:
        return self._names / (digest_of(name.encode()).removeprefix("sha256:") + ".json")

    def _entries(self) -> list[_Name]:
        found = []
        for file in self._names.glob("*.json"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                said = json.loads(file.read_text())
                found.append(
                    _Name(said["name"], said["manifest"], said["repoDigest"], said["pinned"])
                )
        return sorted(found, key=lambda entry: entry.name)

    def _refresh(self) -> None:
        status = self._names.stat()
        now = (status.st_mtime_ns, status.st_ino)
        if now == self._seen:
            return
        by_manifest: dict[str, list[_Name]] = {}
        for entry in self._entries():
            by_manifest.setdefault(entry.manifest, []).append(entry)
        self._images, self._by_name = {}, {}
        for digest, entries in by_manifest.items():
            try:
                self._remember(digest, entries)
            except ImageError:
                continue  # parts of it are gone: it has to be pulled again
        self._seen = now

    def _remember(self, digest: str, entries: Sequence[_Name]) -> None:
        manifest, config = self._read(digest)
        for diff_id, layer in zip(config.diff_ids, manifest.layers, strict=True):
            if not self._layer_path(diff_id).is_dir() and not self.content.has(layer):
                raise ImageError(f"the layer {layer.digest} is not in the store")
        known = self._images.get(manifest.config.digest)
        names = {entry.name for entry in entries} | set(known.names if known else ())
        digests = {entry.repo_digest for entry in entries if entry.repo_digest}
        image = StoredImage(
            manifest.config.digest,
            tuple(sorted(names)),
            tuple(sorted(digests | set(known.repo_digests if known else ()))),
            manifest.config.size + sum(layer.size for layer in manifest.layers),
            manifest,
            config,
            any(entry.pinned for entry in entries),
        )
        self._images[image.id] = image
        for name in (image.id, *image.names, *image.repo_digests):
            self._by_name[name] = image.id

    def _read(self, digest: str) -> tuple[Manifest, ImageConfig]:
        most = manifests.MOST_JSON_BYTES
        manifest = manifests.manifest(
            manifests.document(self.content.read(digest, most), "manifest")
        )
        found = self.content.read(manifest.config.digest, most)
        config = manifests.config(manifests.document(found, "image's configuration"))
        if len(config.diff_ids) != len(manifest.layers):
            raise ImageError(
                f"the image has {len(manifest.layers)} layers, its configuration names "
                f"{len(config.diff_ids)}"
            )
        return manifest, config

    # ---- layers

    async def lowers(self, image: StoredImage) -> list[Path]:
        """The layers as directories, the lowest first; unpacked now where they never were.
        Raises ImageError."""
        found: list[Path] = []
        for diff_id, layer in zip(image.config.diff_ids, image.manifest.layers, strict=True):
            found.append(await self._layer(diff_id, layer, found))
        return found

    async def _layer(self, diff_id: str, layer: Descriptor, below: Sequence[Path]) -> Path:
        target = self._layer_path(diff_id)
        if target.exists():
            return target
        turn = self._turns.setdefault(diff_id, asyncio.Lock())
        async with turn:
            if not target.exists():
                await self._unpack(diff_id, layer, below, target)
        self._turns.pop(diff_id, None)
        return target

    def _layer_path(self, diff_id: str) -> Path:
        return self._layers / diff_id.removeprefix("sha256:")

    async def _unpack(
        self, diff_id: str, layer: Descriptor, below: Sequence[Path], target: Path
    ) -> None:
        directory = tempfile.mkdtemp(dir=self._unpacking)
        os.chmod(directory, 0o755)
        work = [
            str(self.content.path(layer.digest)), manifests.packing_of(layer), layer.digest,
            diff_id, directory, *(str(lower) for lower in reversed(below)),
        ]  # fmt: skip
        try:
            await _run_unpack(work)
            _rename_directory(directory, target)
        except ImageError as error:
            await self._look_at_blob(layer)
            raise ImageError(f"the layer {layer.digest} is not used: {error}") from error
        except OSError as error:
            raise ImageError(f"the layer {layer.digest} cannot be unpacked: {error}") from error
        finally:
            await asyncio.to_thread(_remove_if_there, directory)

    async def _look_at_blob(self, layer: Descriptor) -> None:
        """Was it the image's fault, or the disk's? What the disk damaged is fetched again."""
        if not await asyncio.to_thread(self.content.is_whole, layer):
            self.content.remove(layer.digest)
            self._seen = (-1, -1)  # its images are not there any more
            raise ImageError(
                f"the layer {layer.digest} was damaged on the disk and is removed: "
                "pull or import the image again"
            )


def _rename_directory(directory: str, target: Path) -> None:
    try:
        os.rename(directory, target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another was faster
            raise


def _remove_if_there(directory: str | Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        remove_tree(directory)


async def _run_unpack(work: Sequence[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", "sampan.runtime.images.unpack",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, env={"PATH": os.defpath},
    )  # fmt: skip
    try:
        async with asyncio.timeout(_UNPACK_SECONDS):
            said, complaint = await process.communicate(json.dumps(work).encode())
    except TimeoutError:
        raise ImageError("a layer took too long to unpack") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise ImageError(_reason(said, complaint, process.returncode))


def _reason(said: bytes, complaint: bytes, code: int | None) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(said)["error"])
    last = complaint.decode(errors="replace").strip().splitlines()[-1:] or [f"it ended with {code}"]
    return f"the layer cannot be unpacked: {last[0]}"


Normal = Callable[[str], str]  # a name as somebody wrote it → the full one
