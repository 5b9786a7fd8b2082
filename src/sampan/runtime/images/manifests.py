"""What the small JSON documents of an image say. Pure.

Job: an index → the manifest for this machine; a manifest → config and layers; a config → how it
    is run.
Invariant: whatever is in a document, the answer is a value or an ImageError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.json_files import Damaged, object_in
from sampan.runtime.images.content import Descriptor, ImageError, checked_digest

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEXES, MANIFESTS = (OCI_INDEX, DOCKER_LIST), (OCI_MANIFEST, DOCKER_MANIFEST)
MOST_JSON_BYTES = 4 << 20  # as registries have it
MOST_BLOB_BYTES = 1 << 44  # of which an image has few: the sum is a number that the API takes
MOST_LAYERS = 127  # as containerd and docker have it
# How a layer is packed, by its media type.
PACKINGS = {
    "application/vnd.oci.image.layer.v1.tar": "",
    "application/vnd.oci.image.layer.v1.tar+gzip": "gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd": "zstd",
    "application/vnd.oci.image.layer.nondistributable.v1.tar": "",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip": "gzip",
    "application/vnd.docker.image.rootfs.diff.tar": "",
    "application/vnd.docker.image.rootfs.diff.tar.gzip": "gzip",
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip": "gzip",
}


@dataclass(frozen=True, slots=True)
class Manifest:
    config: Descriptor
    layers: tuple[Descriptor, ...]


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What runs when a pod says nothing else, and of what the file system is made."""

    architecture: str
    diff_ids: tuple[str, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    working_dir: str = ""
    user: str = ""
    stop_signal: str = ""
    volumes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


def document(data: bytes, what: str) -> dict[str, Any]:
    try:
        return object_in(data)
    except Damaged as error:
        raise ImageError(f"the {what} is not to be read: {error}") from error


def media_type_of(found: Mapping[str, Any], told: str = "") -> str:
    """A document may leave out what it is; then its parts tell."""
    said = found.get("mediaType") or told.partition(";")[0].strip()
    if said in (*INDEXES, *MANIFESTS):
        return str(said)
    if "manifests" in found:
        return OCI_INDEX
    if "layers" in found and "config" in found:
        return OCI_MANIFEST
    raise ImageError(f"an image of an unknown kind: {str(said or 'it does not say')[:100]}")


def manifest_for(index: Mapping[str, Any], architecture: str) -> Descriptor:
    """The first for Linux on this kind of machine, else the only one that does not say."""
    entries = [entry for entry in listed(index, "manifests") if isinstance(entry, dict)]
    silent = []
    for entry in entries:
        platform = entry.get("platform")
        if not isinstance(platform, dict):
            silent.append(entry)
        elif platform.get("os") == "linux" and platform.get("architecture") == architecture:
            return descriptor(entry)
    if len(silent) == 1 and len(entries) == 1:
        return descriptor(silent[0])
    raise ImageError(f"no match for platform in manifest: not found: linux/{architecture}")


def manifest(found: Mapping[str, Any]) -> Manifest:
    if found.get("schemaVersion") != 2:
        raise ImageError(f"manifests of version {found.get('schemaVersion')!r} are not supported")
    layers = tuple(descriptor(entry) for entry in listed(found, "layers"))
    if len(layers) > MOST_LAYERS:
        raise ImageError(f"the image has {len(layers)} layers, at most {MOST_LAYERS} can be used")
    for layer in layers:
        packing_of(layer)
    return Manifest(descriptor(found.get("config")), layers)


def packing_of(layer: Descriptor) -> str:
    try:
        return PACKINGS[layer.media_type]
    except KeyError:
        raise ImageError(f"a layer of an unknown kind: {layer.media_type[:100]}") from None


def descriptor(entry: Any) -> Descriptor:
    if not isinstance(entry, dict):
        raise ImageError("a part of the image is described by no JSON object")
    media_type, digest, size = (entry.get(name) for name in ("mediaType", "digest", "size"))
    if not isinstance(media_type, str) or not isinstance(digest, str):
        raise ImageError("a part of the image lacks its kind or its digest")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MOST_BLOB_BYTES:
        raise ImageError(f"{digest[:80]} has no proper size")
    return Descriptor(media_type, checked_digest(digest), size)


def config(found: Mapping[str, Any]) -> ImageConfig:
    run = found.get("config") or {}
    rootfs = found.get("rootfs") or {}
    if not isinstance(run, dict) or not isinstance(rootfs, dict):
        raise ImageError("the image's configuration is not as it should be")
    diff_ids = _texts(rootfs, "diff_ids")
    for diff_id in diff_ids:
        checked_digest(diff_id)
    volumes, labels = run.get("Volumes") or {}, run.get("Labels") or {}
    if not isinstance(volumes, dict) or not isinstance(labels, dict):
        raise ImageError("the image's volumes or labels are no JSON objects")
    return ImageConfig(
        str(found.get("architecture") or ""),
        diff_ids,
        _texts(run, "Entrypoint"),
        _texts(run, "Cmd"),
        _texts(run, "Env"),
        _text(run, "WorkingDir"),
        _text(run, "User"),
        _text(run, "StopSignal"),
        tuple(sorted(str(name) for name in volumes)),
        {str(name): str(value) for name, value in labels.items()},
    )


def listed(found: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = found.get(name) or []
    if not isinstance(value, list):
        raise ImageError(f"{name} of the image is no list")
    return value


def _texts(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = listed(found, name)
    if not all(isinstance(entry, str) for entry in value):
        raise ImageError(f"{name} of the image is no list of texts")
    return tuple(value)


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name) or ""
    if not isinstance(value, str):
        raise ImageError(f"{name} of the image is no text")
    return value
