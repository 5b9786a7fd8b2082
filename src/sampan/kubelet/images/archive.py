"""Image archives: building a small one, and handing one to containerd.

Job: single-layer OCI archives from a few files; `ctr images import`, with full names.
Invariant: the same files give the same bytes, so an image that is already there is recognised.
"""

import asyncio
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.images.reference import InvalidReference, parse
from sampan.runtime.images.archive_reader import DOCKER_NAME, STANDARD_NAME, blob_path, names_in
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.manifests import OCI_INDEX, OCI_MANIFEST

_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_IMPORT_SECONDS = 600.0


class ArchiveError(Exception):
    """The file is no image archive, or cannot be used as it is; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    data: bytes
    mode: int = 0o755
    link_to: str = ""  # a symbolic link instead of a file


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """What runs when the pod says nothing."""

    architecture: str = "amd64"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""
    working_dir: str = ""
    env: tuple[str, ...] = ()
    stop_signal: str = ""


def build_archive(
    reference: str, files: Mapping[str, ArchiveFile], settings: ImageSettings
) -> bytes:
    """An OCI archive of one image with one layer. Parent directories are added."""
    layer = _layer(files)
    config = _json(_config(settings, layer))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [_descriptor(_LAYER, layer)],
        }
    )
    entry = _descriptor(OCI_MANIFEST, manifest)
    # containerd takes the image's name from here; without it, an import has no name.
    entry["annotations"] = {"io.containerd.image.name": reference}
    entry["platform"] = {"architecture": settings.architecture, "os": "linux"}
    index = _json({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]})
    members = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    for blob in (layer, config, manifest):
        members[blob_path(_digest(blob))] = blob
    return _tar({name: ArchiveFile(data, 0o644) for name, data in members.items()})


async def import_archive(socket_path: str, path: Path, *, name: str = "") -> list[str]:
    """Bring the archive's images into the runtime behind `socket_path`; their full names.

    `name` is for an archive that holds one image and does not say what it is called.
    """
    try:
        found = await asyncio.to_thread(names_in, path)
    except ImageError as error:
        raise ArchiveError(str(error)) from error
    if not found and not name:
        raise ArchiveError(
            f"{path} does not say what its image is called: give the name, or save it again "
            "with one (docker save NAME:TAG, skopeo copy … oci-archive:FILE:NAME:TAG)"
        )
    ctr = ["ctr", "--address", socket_path, "--namespace", "k8s.io", "images"]
    if not found:
        await _run([*ctr, "import", "--index-name", _full_name(name), str(path)])
        return [_full_name(name)]
    # Only what is named with the repository is taken from an archive with standard annotations.
    repositories = {_repository(name.written) for name in found if name.place == STANDARD_NAME}
    for options in [["--base-name", repository] for repository in sorted(repositories)] or [[]]:
        await _run([*ctr, "import", *options, str(path)])
    for image in found:
        full = _full_name(image.written)
        if image.place != DOCKER_NAME and image.written != full:
            # The runtime's CRI part passes over names that are not complete.
            await _run([*ctr, "tag", "--force", image.written, full])
            await _run([*ctr, "rm", image.written])
    return [_full_name(image.written) for image in found]


def _repository(reference: str) -> str:
    """As it is written, without tag and digest."""
    head, _, tail = reference.partition("@")[0].rpartition(":")
    return head if head and "/" not in tail else reference.partition("@")[0]


def _full_name(reference: str) -> str:
    try:
        return parse(reference).full_name()
    except InvalidReference as error:
        raise ArchiveError(str(error)) from error


async def _run(command: Sequence[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _IMPORT_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        text = output.decode(errors="replace").strip()
        raise ArchiveError(f"the runtime did not take the image: {text}")


def _config(settings: ImageSettings, layer: bytes) -> Obj:
    run: Obj = {"Env": list(settings.env)}
    for key, value in (
        ("Entrypoint", list(settings.entrypoint)),
        ("Cmd", list(settings.command)),
        ("User", settings.user),
        ("WorkingDir", settings.working_dir),
        ("StopSignal", settings.stop_signal),
    ):
        if value:
            run[key] = value
    return {
        "created": "1970-01-01T00:00:00Z",
        "architecture": settings.architecture,
        "os": "linux",
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "sampan"}],
    }


def _layer(files: Mapping[str, ArchiveFile]) -> bytes:
    return _tar({name.lstrip("/"): file for name, file in files.items()}, directories=True)


def _tar(files: Mapping[str, ArchiveFile], *, directories: bool = False) -> bytes:
    out = io.BytesIO()
    seen: set[str] = set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, file in files.items():
            if directories:
                _add_parents(archive, name, seen)
            _add(archive, name, file)
    return out.getvalue()


def _add_parents(archive: tarfile.TarFile, name: str, seen: set[str]) -> None:
    parts = name.split("/")[:-1]
    for end in range(1, len(parts) + 1):
        parent = "/".join(parts[:end])
        if parent not in seen:
            seen.add(parent)
            info = tarfile.TarInfo(parent + "/")
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if parent == "tmp" else 0o755
            archive.addfile(info)


def _add(archive: tarfile.TarFile, name: str, file: ArchiveFile) -> None:
    info = tarfile.TarInfo(name)
    info.mode = file.mode
    if file.link_to:
        info.type, info.linkname = tarfile.SYMTYPE, file.link_to
        archive.addfile(info)
        return
    if name.endswith("/"):
        info.type = tarfile.DIRTYPE
        archive.addfile(info)
        return
    info.size = len(file.data)
    archive.addfile(info, io.BytesIO(file.data))


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def _json(value: Obj) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
