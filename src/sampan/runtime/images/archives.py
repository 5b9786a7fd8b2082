"""Images in files: `docker save`, OCI layouts in a tar.

Job: an archive → its parts in the content store, its names in the image store.
Invariant: nothing is named before everything that the name needs is there and checked.
Blocking: to be called in a thread.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from sampan.runtime.images import manifests
from sampan.runtime.images.archive_reader import (
    DOCKER_NAME,
    Archive,
    blob_path,
    docker_entries,
    layout_entries,
    names_of,
    opened_archive,
)
from sampan.runtime.images.claims import Claim
from sampan.runtime.images.content import (
    CHUNK_BYTES,
    Descriptor,
    ImageError,
    chunks_of,
    digest_of,
)
from sampan.runtime.images.image_store import ImageStore, Normal

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def import_archive(
    store: ImageStore, path: Path, normal: Normal, architecture: str, name: str = ""
) -> list[str]:
    """The full names of what was in it. Raises ImageError.

    `name`: for an archive of one image that does not say what it is called."""
    try:
        with opened_archive(path) as archive:
            return _imported(store, archive, normal, architecture, name)
    except ImageError:
        store.collect(unfinished=False)  # nothing of it stays
        raise


def _imported(
    store: ImageStore, archive: Archive, normal: Normal, architecture: str, name: str
) -> list[str]:
    with store.claims.claiming() as claim:
        if archive.has("index.json"):
            found = _from_layout(store, archive, architecture, claim)
        else:
            found = _from_docker(store, archive, claim)
        if not any(names for names, _ in found) and name and len(found) == 1:
            found = [([name], found[0][1])]
        named = [(normal(given), manifest) for names, manifest in found for given in names]
        for full_name, manifest in named:
            store.put(full_name, manifest)
        return [full_name for full_name, _ in named]


Found = list[tuple[list[str], Descriptor]]


def _from_layout(store: ImageStore, archive: Archive, architecture: str, claim: Claim) -> Found:
    docker_names = _names_by_config(archive)
    found: Found = []
    for entry in layout_entries(archive):
        target = manifests.descriptor(entry)
        if target.media_type in manifests.INDEXES:
            found_index = manifests.document(_checked(archive, target), "index")
            target = manifests.manifest_for(found_index, architecture)
        manifest = manifests.manifest(manifests.document(_checked(archive, target), "manifest"))
        parts = (target, manifest.config, *manifest.layers)
        claim.add(*(part.digest for part in parts))
        for part in parts:
            _copy(store, archive, blob_path(part.digest), part)
        names = [name.written for name in names_of(entry)] or docker_names.get(
            manifest.config.digest, []
        )
        found.append((names, target))
    return found


def _checked(archive: Archive, part: Descriptor) -> bytes:
    data = archive.read(blob_path(part.digest))
    if digest_of(data) != part.digest:
        raise ImageError(f"failed digest verification: {digest_of(data)} came, not {part.digest}")
    return data


def _names_by_config(archive: Archive) -> dict[str, list[str]]:
    """A docker archive that is a layout too names its images in manifest.json."""
    if not archive.has("manifest.json"):
        return {}
    return {
        "sha256:" + Path(str(entry.get("Config"))).name.removesuffix(".json"): list(
            entry.get(DOCKER_NAME) or ()
        )
        for entry in docker_entries(archive)
    }


def _from_docker(store: ImageStore, archive: Archive, claim: Claim) -> Found:
    found: Found = []
    for entry in docker_entries(archive):
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
        found.append((list(entry.get(DOCKER_NAME) or ()), target))
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


def described(part: Descriptor) -> dict[str, Any]:
    return {"mediaType": part.media_type, "digest": part.digest, "size": part.size}
