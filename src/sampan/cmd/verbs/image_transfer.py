"""`sampan image pull|save|load|rm`: images from registries, to files, from Docker or podman.

Job: have containerd's own `ctr` and the other engines do it; say how many bytes there were.
Invariant: what a program says when it fails ends as one sentence.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sampan.kubelet.images.archive import ArchiveError
from sampan.kubelet.images.reference import InvalidReference, parse
from sampan.runtime.programs import system_path

ENGINES = ("docker", "podman")
SECONDS = 3600.0


def full_name(name: str) -> str:
    try:
        return parse(name).full_name()
    except InvalidReference as error:
        raise ArchiveError(f"{name} is no image's name: {error}") from error


def pull(socket_path: str, root: Path, name: str) -> str:
    """The full name of what is there now. On a terminal ctr shows the bytes of each layer."""
    full, hosts = full_name(name), root / "containerd" / "certs.d"
    options = ["--hosts-dir", str(hosts)] if hosts.exists() else []
    _run([*_ctr(socket_path), "pull", *options, full], shows_progress=True)
    return full


def save(socket_path: str, name: str, path: Path) -> int:
    """How many bytes the archive has. It is whole, or not there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _run([*_ctr(socket_path), "export", str(beside), full_name(name)])
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path.stat().st_size


def untag(socket_path: str, names: Sequence[str]) -> None:
    """These names lead to no image any more; what has other names stays."""
    _run([*_ctr(socket_path), "rm", *names])


def engine(wanted: str) -> str:
    """The program that has the image: the one that was named, else the first there is."""
    candidates = (wanted,) if wanted else ENGINES
    for name in candidates:
        if shutil.which(name):
            return name
    raise ArchiveError(
        f"{' and '.join(candidates)} not found here: save the image where it is (docker save NAME "
        "-o FILE) and `sampan image import FILE`"
    )


def save_from(program: str, name: str, folder: Path) -> Path:
    """An archive of what the other engine has under this name."""
    path = folder / "image.tar"
    _run([program, "save", "-o", str(path), name])
    return path


def scratch() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="sampan-image-")


def _ctr(socket_path: str) -> list[str]:
    return ["ctr", "--address", socket_path, "--namespace", "k8s.io", "images"]


def _run(command: Sequence[str], *, shows_progress: bool = False) -> None:
    environment = {**os.environ, "PATH": system_path(os.environ)}
    is_shown = shows_progress and sys.stdout.isatty()
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=None if is_shown else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            env=environment,
        )
    except FileNotFoundError as error:
        raise ArchiveError(f"{command[0]} was not found: `sampan doctor`") from error
    except subprocess.TimeoutExpired as error:
        raise ArchiveError(f"{command[0]} did not end within {SECONDS:.0f} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout or "").strip().splitlines()
        raise ArchiveError(f"{command[0]}: {said[-1] if said else f'exit {done.returncode}'}")
