"""The namespaces that the containers of a pod share, held by files instead of a process.

Job: make network, IPC and host name namespaces and pin each to a file; let them go again.
Invariant: the thread that makes them is never used for anything else.
Invariant: a file without a mount is a namespace of before the last boot: gone.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from sampan.kubelet.volumes.mounts import MS_BIND, mount, unmount_all

NETWORK, IPC, UTS = "net", "ipc", "uts"
_FLAGS = {NETWORK: 0x40000000, IPC: 0x08000000, UTS: 0x04000000}


def make_namespaces(
    directory: Path, kinds: tuple[str, ...], hostname: str, sysctls: Mapping[str, str]
) -> None:
    """Blocking. Raises OSError; then nothing is left mounted."""
    failures: list[OSError] = []

    def make() -> None:
        try:
            _make(directory, kinds, hostname, sysctls)
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=make, name="pod-namespaces")
    thread.start()
    thread.join()
    if failures:
        release_namespaces(directory)
        raise failures[0]


def _make(
    directory: Path, kinds: tuple[str, ...], hostname: str, sysctls: Mapping[str, str]
) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(sum(_FLAGS[kind] for kind in kinds)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    if UTS in kinds and hostname:
        encoded = hostname.encode()
        if libc.sethostname(encoded, len(encoded)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), hostname)
    for name, value in sysctls.items():
        Path("/proc/sys", *name.replace("/", ".").split(".")).write_text(value)
    for kind in kinds:
        file = directory / kind
        file.touch()
        mount(f"/proc/thread-self/ns/{kind}", str(file), flags=MS_BIND)


def release_namespaces(directory: Path) -> None:
    for kind in _FLAGS:
        file = directory / kind
        if file.exists():
            unmount_all(str(file))
            with contextlib.suppress(FileNotFoundError):
                file.unlink()


def is_held(file: Path) -> bool:
    """Is a namespace pinned there?"""
    try:
        return os.stat(file).st_dev != os.stat(file.parent).st_dev
    except OSError:
        return False
