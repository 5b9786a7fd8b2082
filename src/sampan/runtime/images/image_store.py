"""The images of a node: which name is which image, and what it is made of.

Job: names → manifests → layers; forget what nothing names any more.
Invariant: a name leads to an image whose parts are all there: in the content store, or unpacked.
Invariant: what is about to be named (a pull), mounted (a container), or another cluster's is never
    removed.
Owner: one per node; files of one directory, which is read again when another process changed it.
"""

import contextlib
import json
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.json_files import Damaged, json_object
from sampan.core.log import get_logger
from sampan.runtime.images import manifests
from sampan.runtime.images.claims import Claims
from sampan.runtime.images.content import (
    ContentStore,
    Descriptor,
    ImageError,
    digest_of,
)
from sampan.runtime.images.layers import LayerDamaged, Layers, remove_if_there
from sampan.runtime.images.manifests import ImageConfig, Manifest

log = get_logger(__name__)
_NEVER: frozenset[tuple[str, int]] = frozenset({("", -1)})


@dataclass(frozen=True, slots=True)
class StoredImage:
    id: str  # the digest of its configuration, as everywhere
    names: tuple[str, ...]
    repo_digests: tuple[str, ...]
    size: int
    manifest: Manifest
    manifest_digest: str
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
    def __init__(
        self,
        home: Path,
        shared: Path | None = None,
        layers_of: Callable[[Path], Collection[str]] = lambda home: (),
    ) -> None:
        """`home`: of this node's names; `shared`: of blobs and layers, which other nodes' stores
        may have, too. `layers_of`: the diff ids that the containers of a home stand on."""
        self._home, self._layers_of = home, layers_of
        self._names = home / "names"
        shared = shared or home
        for directory in (shared, self._names):
            directory.mkdir(parents=True, exist_ok=True)
        self.content, self.claims = ContentStore(shared), Claims(shared)
        self.claims.register(home)
        self._layers = Layers(shared, self.content, self.claims)
        self._seen = _NEVER  # the files of names when they were last read
        self._images: dict[str, StoredImage] = {}
        self._by_name: dict[str, str] = {}

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
        self._seen = _NEVER
        found = self.find(name)
        if found is None:
            raise ImageError(f"parts of {name} are not in the store")
        return found

    def remove(self, image: StoredImage, names: Collection[str] = ()) -> None:
        """All of its names, or these; what is left without a name goes with the next collect."""
        for name in names or (*image.names, *image.repo_digests, image.id):
            self._file(name).unlink(missing_ok=True)
        self._seen = _NEVER

    def collect(self, *, unfinished: bool = True) -> None:
        """Blobs and layers go that no image of any home has, no container stands on and nobody
        claims; and what was left halfway (`unfinished`: pulls that could go on, too). Blocking."""
        with self.claims.removing() as keep:
            for home in self.claims.homes():
                keep |= self._needed_by(home)
            for digest in self.content.digests() - keep:
                self.content.remove(digest)
            self._layers.put_aside(keep)
            left = self._layers.left()
            if unfinished:
                self.content.remove_unfinished()
        for directory in left:
            remove_if_there(directory)

    def _needed_by(self, home: Path) -> set[str]:
        found = set(self._layers_of(home))
        for entry in _entries(home / "names"):
            found.add(entry.manifest)
            with contextlib.suppress(ImageError):  # it has to be pulled again
                manifest, config = self._read(entry.manifest)
                found |= {manifest.config.digest, *config.diff_ids}
                found |= {layer.digest for layer in manifest.layers}
        return found

    def forget_home(self) -> None:
        """Its names count no more."""
        self.claims.unregister(self._home)

    def _file(self, name: str) -> Path:
        return self._names / (digest_of(name.encode()).removeprefix("sha256:") + ".json")

    def _refresh(self) -> None:
        # A name that moves is another file: times of a directory are too coarse to tell.
        with os.scandir(self._names) as entries_there:
            now = frozenset((entry.name, entry.inode()) for entry in entries_there)
        if now == self._seen:
            return
        by_manifest: dict[str, list[_Name]] = {}
        for entry in _entries(self._names):
            by_manifest.setdefault(entry.manifest, []).append(entry)
        images: dict[str, StoredImage] = {}
        for digest, entries in by_manifest.items():
            try:
                self._remember(images, digest, entries)
            except ImageError as error:  # parts are gone: it has to be pulled again
                names = ", ".join(entry.name for entry in entries)
                log.warning("image skipped", image=names, error=error)
        self._by_name = {
            name: image.id
            for image in images.values()
            for name in (image.id, *image.names, *image.repo_digests)
        }
        self._images, self._seen = images, now

    def _remember(
        self, images: dict[str, StoredImage], digest: str, entries: Sequence[_Name]
    ) -> None:
        manifest, config = self._read(digest)
        for diff_id, layer in zip(config.diff_ids, manifest.layers, strict=True):
            if not self._layers.has(diff_id) and not self.content.has(layer):
                raise ImageError(f"the layer {layer.digest} is not in the store")
        known = images.get(manifest.config.digest)
        names = {entry.name for entry in entries} | set(known.names if known else ())
        digests = {entry.repo_digest for entry in entries if entry.repo_digest}
        image = StoredImage(
            manifest.config.digest,
            tuple(sorted(names)),
            tuple(sorted(digests | set(known.repo_digests if known else ()))),
            manifest.config.size + sum(layer.size for layer in manifest.layers),
            manifest,
            digest,
            config,
            any(entry.pinned for entry in entries),
        )
        images[image.id] = image

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

    async def lowers(self, image: StoredImage) -> list[Path]:
        """The layers as directories, the lowest first; unpacked now where they never were.
        Raises ImageError."""
        found: list[Path] = []
        try:
            for diff_id, layer in zip(image.config.diff_ids, image.manifest.layers, strict=True):
                found.append(await self._layers.unpacked(diff_id, layer, found))
        except LayerDamaged:
            self._seen = _NEVER  # images with that layer are not there any more
            raise
        return found


def _entries(names: Path) -> list[_Name]:
    found = []
    for file in names.glob("*.json"):
        try:
            document = json_object(file)
            name, manifest, digest = (document[key] for key in ("name", "manifest", "repoDigest"))
            if not all(isinstance(part, str) for part in (name, manifest, digest)):
                raise Damaged(f"{file} names no image")
            found.append(_Name(name, manifest, digest, bool(document["pinned"])))
        except (Damaged, KeyError) as error:
            log.warning("image name skipped", error=error)
    return sorted(found, key=lambda entry: entry.name)


Normal = Callable[[str], str]  # a name as somebody wrote it → the full one
