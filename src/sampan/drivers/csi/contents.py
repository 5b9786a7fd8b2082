"""What is in a volume: a directory, or a file that is a disk. Blocking.

Job: make it empty or as a copy, grow it, mount it, show it to a pod, and undo each of that.
Invariant: every step can be repeated: what is done already is kept.
"""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

from sampan.core.mounts import MS_BIND, MS_RDONLY, MS_REMOUNT, is_mounted, mount, unmount_all
from sampan.drivers.csi import loop_devices
from sampan.drivers.csi.records import Volume
from sampan.drivers.csi.settings import DIRECTORY

DEFAULT_FS = "ext4"
_PROGRAM_SECONDS = 300.0
_MODE = 0o750
_EXT_MAGIC = 0xEF53
SLACK_BYTES = 1 << 20  # that a file system may leave unused at its end


class ContentFailure(Exception):
    """And why."""


class InUse(ContentFailure):
    """It works once nobody has it mounted."""


def content_of(place: Path, kind: str) -> Path:
    return place / ("data" if kind == DIRECTORY else "disk.img")


def make(place: Path, volume: Volume) -> None:
    """Empty. Raises ContentFailure, OSError."""
    content = content_of(place, volume.kind)
    place.mkdir(exist_ok=True)
    if volume.kind == DIRECTORY:
        content.mkdir(exist_ok=True)
        content.chmod(0o777)
        return
    with open(content, "wb") as file:
        file.truncate(volume.size_bytes)
    if not volume.block:
        _run([f"mkfs.{volume.fs_type or DEFAULT_FS}", "-q", "-F", str(content)])


def copy(source: Path, place: Path, kind: str) -> None:
    """Everything, with owners and modes; a half copy of an earlier try goes. Raises as `make`."""
    place.mkdir(exist_ok=True)
    content = content_of(place, kind)
    if content.is_dir():
        shutil.rmtree(content)
    options = ["-a", "--reflink=auto", "--sparse=auto"]
    _run(["cp", *options, "--", str(content_of(source, kind)), str(content)])


def resize(place: Path, kind: str, size_bytes: int) -> None:
    """It is never made smaller. Raises OSError."""
    if kind == DIRECTORY:
        return
    content = content_of(place, kind)
    if content.stat().st_size < size_bytes:
        os.truncate(content, size_bytes)


def stage(place: Path, volume: Volume, staging: str, options: list[str]) -> None:
    """Raises ContentFailure, OSError."""
    content = str(content_of(place, volume.kind))
    if volume.kind != DIRECTORY:
        device = loop_devices.attach(content)
        if volume.block or is_mounted(staging):
            return
        _grow_unmounted(content)
        os.makedirs(staging, _MODE, exist_ok=True)
        flags = ["-o", ",".join(options)] if options else []
        _run(["mount", "-t", volume.fs_type or DEFAULT_FS, *flags, device, staging])
        loop_devices.detach(content)  # with the mount, however that ends
        return
    if not is_mounted(staging):
        os.makedirs(staging, _MODE, exist_ok=True)
        mount(content, staging, flags=MS_BIND)


def unstage(place: Path, volume: Volume | None, staging: str) -> None:
    """Raises OSError."""
    unmount_all(staging)
    if volume is not None and volume.kind != DIRECTORY:
        loop_devices.detach(str(content_of(place, volume.kind)))


def publish(source: str, target: str, *, is_block: bool, read_only: bool) -> None:
    """Raises OSError."""
    if is_mounted(target):
        return
    os.makedirs(os.path.dirname(target), _MODE, exist_ok=True)
    if is_block:
        Path(target).touch()
    else:
        os.makedirs(target, _MODE, exist_ok=True)
    mount(source, target, flags=MS_BIND)
    if read_only and not is_block:
        try:
            mount("none", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)
        except OSError:
            unmount_all(target)
            raise


def unpublish(target: str) -> None:
    """Raises OSError."""
    unmount_all(target)
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(target):
            os.rmdir(target)
        else:
            os.unlink(target)


def device_of(place: Path, volume: Volume) -> str:
    """Raises ContentFailure where it is not attached."""
    device = loop_devices.find(str(content_of(place, volume.kind)))
    if device is None:
        raise ContentFailure(f"volume {volume.id} has no device on this node")
    return device


def grow_file_system(place: Path, volume: Volume, mounted_at: str) -> None:
    """Where it is staged. Raises InUse, ContentFailure, OSError."""
    if volume.kind == DIRECTORY:
        return
    device = device_of(place, volume)
    loop_devices.grown(device)
    if volume.block:
        return
    grow = {"xfs": ["xfs_growfs", mounted_at]}.get(volume.fs_type, ["resize2fs", device])
    try:
        _run(grow)
    except ContentFailure as error:
        if "Permission denied" in str(error):
            raise InUse("growing a mounted file system takes CAP_SYS_RESOURCE") from error
        raise


def _grow_unmounted(image: str) -> None:
    """As far as its file reaches. Raises ContentFailure, OSError."""
    size = _ext_size(image)
    if size and size < os.path.getsize(image) - SLACK_BYTES:
        _run(["e2fsck", "-f", "-p", image], fine=1)  # 1: something was repaired
        _run(["resize2fs", image])


def _ext_size(image: str) -> int:
    """Of the file system in it; 0: it is none of ext's."""
    with open(image, "rb") as file:
        file.seek(1024)
        block = file.read(1024)
    if len(block) < 1024 or int.from_bytes(block[56:58], "little") != _EXT_MAGIC:
        return 0
    count = int.from_bytes(block[4:8], "little")
    return count << (10 + int.from_bytes(block[24:28], "little"))


def _run(command: list[str], fine: int = 0) -> None:
    """`fine`: the highest exit code that is."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROGRAM_SECONDS, check=False)
    except FileNotFoundError as error:
        raise ContentFailure(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ContentFailure(f"{command[0]} took too long") from error
    if done.returncode > fine or done.returncode < 0:
        said = done.stderr.decode(errors="replace").strip()
        raise ContentFailure(f"{' '.join(command)}: {said or done.returncode}")
