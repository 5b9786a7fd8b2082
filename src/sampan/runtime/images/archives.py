"""Images in files: `docker save`, OCI layouts in a tar.

Job: an archive → its parts in the content store, its names in the image store.
Invariant: nothing is named before everything that the name needs is there and checked.
Blocking: to be called in a thread.
"""

import hashlib
import json
import lzma
import tarfile
import zlib
from pathlib import Path
from typing import IO, Any

from sampan.runtime.images import manifests
from sampan.runtime.images.claims import Claim
from sampan.runtime.images.content import (
    CHUNK_BYTES,
    Descriptor,
    ImageError,
    chunks_of,
    digest_of,
)
from sampan.runtime.images.image_store import ImageStore, Normal
from sampan.runtime.images.layer import TAR_ERRORS, StrictEntry

CONTAINERD_NAME = "io.containerd.image.name"
STANDARD_NAME = "org.opencontainers.image.ref.name"
_MOST_MEMBERS = 100_000  # of an image there are a few for each of its layers
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


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


def import_archive(
    store: ImageStore, path: Path, normal: Normal, architecture: str, name: str = ""
) -> list[str]:
    """The full names of what was in it. Raises ImageError.

    `name`: for an archive of one image that does not say what it is called."""
    try:
        with tarfile.open(path, tarinfo=StrictEntry) as opened:
            return _imported(store, Archive(opened, path), normal, architecture, name)
    except ImageError:
        store.collect(unfinished=False)  # nothing of it stays
        raise
    except OSError as error:
        store.collect(unfinished=False)
        raise ImageError(f"{path} cannot be imported: {error}") from error
    except (*TAR_ERRORS, zlib.error, lzma.LZMAError) as error:
        store.collect(unfinished=False)
        raise ImageError(f"{path} is not an image archive: {error}") from error


def _imported(
    store: ImageStore, archive: Archive, normal: Normal, architecture: str, name: str
) -> list[str]:
    with store.claims.claiming() as claim:
        if archive.has("index.json"):
            found = _from_layout(store, archive, architecture, claim)
        elif archive.has("manifest.json"):
            found = _from_docker(store, archive, claim)
        else:
            raise ImageError(
                f"{archive.path} is not an image archive: it has neither index.json nor "
                "manifest.json"
            )
        if not any(names for names, _ in found) and name and len(found) == 1:
            found = [([name], found[0][1])]
        named = [(normal(given), manifest) for names, manifest in found for given in names]
        for full_name, manifest in named:
            store.put(full_name, manifest)
        return [full_name for full_name, _ in named]


Found = list[tuple[list[str], Descriptor]]


def _from_layout(store: ImageStore, archive: Archive, architecture: str, claim: Claim) -> Found:
    index = manifests.document(archive.read("index.json"), "index")
    docker_names = _names_by_config(archive)
    found: Found = []
    for entry in manifests.listed(index, "manifests"):
        target = manifests.descriptor(entry)
        if target.media_type in manifests.INDEXES:
            found_index = manifests.document(_checked(archive, target), "index")
            target = manifests.manifest_for(found_index, architecture)
        manifest = manifests.manifest(manifests.document(_checked(archive, target), "manifest"))
        parts = (target, manifest.config, *manifest.layers)
        claim.add(*(part.digest for part in parts))
        for part in parts:
            _copy(store, archive, blob_path(part.digest), part)
        names = _names_of(entry) or docker_names.get(manifest.config.digest, [])
        found.append((names, target))
    return found


def _checked(archive: Archive, part: Descriptor) -> bytes:
    data = archive.read(blob_path(part.digest))
    if digest_of(data) != part.digest:
        raise ImageError(f"failed digest verification: {digest_of(data)} came, not {part.digest}")
    return data


def _names_of(entry: dict[str, Any]) -> list[str]:
    annotations = entry.get("annotations") or {}
    if not isinstance(annotations, dict):
        return []
    full, standard = annotations.get(CONTAINERD_NAME), annotations.get(STANDARD_NAME)
    if isinstance(full, str) and full:
        return [full]
    if isinstance(standard, str) and ("/" in standard or ":" in standard):
        return [standard]  # skopeo puts the whole name where the standard has only the tag
    return []


def _names_by_config(archive: Archive) -> dict[str, list[str]]:
    """A docker archive that is a layout too names its images in manifest.json."""
    if not archive.has("manifest.json"):
        return {}
    return {
        "sha256:" + Path(str(entry.get("Config"))).name.removesuffix(".json"): list(
            entry.get("RepoTags") or ()
        )
        for entry in _docker_entries(archive)
    }


def _docker_entries(archive: Archive) -> list[dict[str, Any]]:
    found = json.loads(archive.read("manifest.json"))
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ImageError("manifest.json of the archive is no list of images")
    for entry in found:
        for name in ("Layers", "RepoTags"):
            if not isinstance(entry.get(name) or [], list):
                raise ImageError(f"{name} in manifest.json of the archive is no list")
    return found


def _from_docker(store: ImageStore, archive: Archive, claim: Claim) -> Found:
    found: Found = []
    for entry in _docker_entries(archive):
        data = archive.read(str(entry.get("Config")))
        config = Descriptor("application/vnd.oci.image.config.v1+json", digest_of(data), len(data))
        claim.add(config.digest)
        store.content.write(config, [data])
        layers = [_layer(store, archive, str(name), claim) for name in entry.get("Layers") or ()]
        manifest = {
            "schemaVersion": 2,
            "mediaType": manifests.OCI_MANIFEST,
            "config": described(config),
            "layers": [described(layer) for layer in layers],
        }
        data = json.dumps(manifest, sort_keys=True).encode()
        target = Descriptor(manifests.OCI_MANIFEST, digest_of(data), len(data))
        claim.add(target.digest)
        store.content.write(target, [data])
        found.append((list(entry.get("RepoTags") or ()), target))
    return found


def _layer(store: ImageStore, archive: Archive, name: str, claim: Claim) -> Descriptor:
    """Docker's archives do not say a layer's digest: it is read twice."""
    opened, size = archive.open(name)
    with opened:
        first = opened.read(4)
        digest = hashlib.sha256(first)
        for chunk in chunks_of(opened):
            digest.update(chunk)
    packing = "+gzip" if first[:2] == _GZIP else "+zstd" if first == _ZSTD else ""
    layer = Descriptor(
        f"application/vnd.oci.image.layer.v1.tar{packing}", f"sha256:{digest.hexdigest()}", size
    )
    claim.add(layer.digest)
    _copy(store, archive, name, layer)
    return layer


def _copy(store: ImageStore, archive: Archive, name: str, part: Descriptor) -> None:
    if store.content.has(part):
        return
    opened, _ = archive.open(name)
    with opened:
        store.content.write(part, iter(lambda: opened.read(CHUNK_BYTES), b""))


def blob_path(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def described(part: Descriptor) -> dict[str, Any]:
    return {"mediaType": part.media_type, "digest": part.digest, "size": part.size}
