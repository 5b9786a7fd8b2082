"""An image as a file: an OCI layout in a tar, which docker takes for its own, too.

Job: the parts of an image from the content store → one archive.
Invariant: the file is whole, or not there; every part was compared with its digest on the way.
Invariant: the same image gives the same bytes.
Blocking: to be called in a thread.
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from sampan.runtime.images import manifests
from sampan.runtime.images.archive_reader import CONTAINERD_NAME, STANDARD_NAME, blob_path
from sampan.runtime.images.archives import described
from sampan.runtime.images.content import Descriptor, ImageError
from sampan.runtime.images.image_store import ImageStore, StoredImage


def save_archive(store: ImageStore, image: StoredImage, names: Sequence[str], path: Path) -> int:
    """How many bytes it has. Raises ImageError, OSError."""
    with store.claims.claiming() as claim:
        manifest = _manifest_of(store, image)
        parts = [manifest, image.manifest.config, *image.manifest.layers]
        claim.add(*(part.digest for part in parts))
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with beside.open("xb") as file:
                with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
                    for name, document in _documents(image, manifest, names).items():
                        data = json.dumps(document, sort_keys=True).encode()
                        archive.addfile(_entry(name, len(data)), io.BytesIO(data))
                    for part in {part.digest: part for part in parts}.values():
                        _add(archive, store, part)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    return path.stat().st_size


def _manifest_of(store: ImageStore, image: StoredImage) -> Descriptor:
    digest = image.manifest_digest
    data = store.content.read(digest, manifests.MOST_JSON_BYTES)
    kind = manifests.media_type_of(manifests.document(data, "manifest"))
    return Descriptor(kind, digest, len(data))


def _documents(image: StoredImage, manifest: Descriptor, names: Sequence[str]) -> dict[str, Any]:
    entries = [
        described(manifest)
        | {"annotations": {CONTAINERD_NAME: name, STANDARD_NAME: name.rpartition(":")[2]}}
        for name in names
    ]
    docker = {
        "Config": blob_path(image.manifest.config.digest),
        "RepoTags": list(names),
        "Layers": [blob_path(layer.digest) for layer in image.manifest.layers],
    }
    return {
        "oci-layout": {"imageLayoutVersion": "1.0.0"},
        "index.json": {
            "schemaVersion": 2,
            "mediaType": manifests.OCI_INDEX,
            "manifests": entries or [described(manifest)],
        },
        "manifest.json": [docker],
    }


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry


def _add(archive: tarfile.TarFile, store: ImageStore, part: Descriptor) -> None:
    if not store.content.has(part):
        raise ImageError(f"{part.digest} is not in the store any more: pull the image again")
    with store.content.path(part.digest).open("rb") as file:
        reader = _Hashed(file)
        archive.addfile(_entry(blob_path(part.digest), part.size), reader)  # type: ignore[arg-type]  # all that is asked of it is read
    if reader.digest != part.digest:
        store.content.remove(part.digest)
        raise ImageError(f"{part.digest} was damaged on the disk and is removed: pull it again")


class _Hashed:
    """What tarfile reads a file's content from."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self._hash = source, hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self._hash.update(data)
        return data

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"
