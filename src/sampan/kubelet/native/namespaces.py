"""The namespaces that the containers of a pod share, held by files instead of a process.

Job: make network, IPC and host name namespaces and pin each to a file; let them go again.
Invariant: the thread that makes them is in them afterwards, and used for no other pod.
Invariant: a file without a mount is a namespace of before the last boot: gone.
"""

import contextlib
import ctypes
import errno
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from sampan.core.mounts import MS_BIND, mount, unmount_all
from sampan.kubelet.contracts.runtime import IdRange

NETWORK, IPC, UTS, USERS = "net", "ipc", "uts", "user"
_FLAGS = {NETWORK: 0x40000000, IPC: 0x08000000, UTS: 0x04000000}
_SECONDS = 10.0
_libc = ctypes.CDLL(None, use_errno=True)


def make_namespaces(
    directory: Path,
    kinds: tuple[str, ...],
    hostname: str,
    sysctls: Mapping[str, str],
    users: IdRange | None = None,
) -> None:
    """`users`: the others belong to a namespace of these. The thread is in them afterwards.
    Blocking. Raises OSError; then nothing is left mounted."""
    made = False
    try:
        if users is None:
            _make(directory, kinds, hostname, sysctls)
        else:
            _make_owned(directory, kinds, users)
            _configure_owned(directory, kinds, hostname, sysctls)
        made = True
    finally:
        if not made:
            release_namespaces(directory)


def _make(
    directory: Path, kinds: tuple[str, ...], hostname: str, sysctls: Mapping[str, str]
) -> None:
    _call("unshare", sum(_FLAGS[kind] for kind in kinds))
    _configure(kinds, hostname, sysctls)
    for kind in kinds:
        _pin(f"/proc/thread-self/ns/{kind}", directory / kind)


def _make_owned(directory: Path, kinds: tuple[str, ...], users: IdRange) -> None:
    """By a process of its own: one with threads cannot enter a user namespace."""
    options = [f"--{kind}" for kind in kinds]
    maker = subprocess.Popen(
        ["unshare", *options, "sh", "-c", "echo made; read end"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert maker.stdout is not None
    assert maker.stderr is not None
    try:
        if not maker.stdout.readline():
            raise OSError(errno.EPERM, maker.stderr.read().strip() or "unshare")
        for ids in ("uid_map", "gid_map"):
            Path(f"/proc/{maker.pid}/{ids}").write_text(f"0 {users.first} {users.length}\n")
        for kind in kinds:
            _pin(f"/proc/{maker.pid}/ns/{kind}", directory / kind)
    finally:
        maker.communicate(timeout=_SECONDS)


def _configure_owned(
    directory: Path, kinds: tuple[str, ...], hostname: str, sysctls: Mapping[str, str]
) -> None:
    for kind in kinds:
        if kind in _FLAGS:
            descriptor = os.open(directory / kind, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _call("setns", descriptor, _FLAGS[kind])
            finally:
                os.close(descriptor)
    _configure(kinds, hostname, sysctls)


def _configure(kinds: tuple[str, ...], hostname: str, sysctls: Mapping[str, str]) -> None:
    """Those that this thread is in."""
    if UTS in kinds and hostname:
        encoded = hostname.encode()
        _call("sethostname", encoded, len(encoded))
    for name, value in sysctls.items():
        Path("/proc/sys", *name.replace("/", ".").split(".")).write_text(value)


def _pin(namespace: str, file: Path) -> None:
    file.touch()
    mount(namespace, str(file), flags=MS_BIND)


def _call(name: str, *arguments: int | bytes) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def release_namespaces(directory: Path) -> None:
    for kind in (*_FLAGS, USERS):
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
