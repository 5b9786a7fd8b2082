"""The namespaces of a node without root: users, mounts and network of its own.

Job: enter new ones, or those of an earlier process whose containers still run; keep them, by a
    small process that does nothing else; let them go.
Invariant: done before this process has a second thread: the kernel moves threads one by one.
Invariant: what is mounted inside is seen by nobody outside, and is gone with the last process.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import NamedTuple

from sampan.cmd.errors import CannotStart
from sampan.cmd.rootless.id_ranges import IdRange, as_lines, is_single
from sampan.cmd.rootless.outside import Outside, OutsideError
from sampan.cmd.rootless.uplink import INTERFACE
from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.mounts import MS_BIND, mount

_NEW_USERS, _NEW_MOUNTS, _NEW_NETWORK = 0x10000000, 0x00020000, 0x40000000
_UNIFIED = Path("/sys/fs/cgroup/unified")
_KEEPER = ("sleep", "infinity")


class Process(NamedTuple):
    pid: int
    started: int  # in ticks since the boot: another process of that number has another

    @classmethod
    def of(cls, pid: int) -> "Process":
        return cls(pid, _started_at(pid))

    @property
    def is_alive(self) -> bool:
        return self.started > 0 and _started_at(self.pid) == self.started

    def kill(self) -> None:
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


NOBODY = Process(0, 0)


@dataclass(frozen=True, slots=True)
class Kept:
    """The process that keeps the namespaces, and the one that moves their packets."""

    keeper: Process
    uplink: Process = NOBODY
    is_for_that: bool = True  # False: a container, whose end nobody should wait for


def record_file(data_dir: Path) -> Path:
    return data_dir / "rootless.json"


def home(data_dir: Path) -> Path:
    """What containers' monitors have on their command lines."""
    return data_dir / "native"


def kept_in(data_dir: Path) -> Kept | None:
    """None where they are gone, or never were."""
    recorded = _recorded(data_dir)
    if recorded is not None and recorded.keeper.is_alive:
        return recorded
    if recorded is not None:
        recorded.uplink.kill()
    return _container_in(data_dir)


def _recorded(data_dir: Path) -> Kept | None:
    try:
        said = json.loads(record_file(data_dir).read_text())
        keeper, uplink = (Process(*map(int, said[name])) for name in ("keeper", "uplink"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Kept(keeper, uplink)


def _container_in(data_dir: Path) -> Kept | None:
    """Somebody killed the process that keeps them, but a container is still there."""
    part, own = os.fsencode(home(data_dir)) + b"/", os.geteuid()
    for entry in Path("/proc").iterdir():
        if not is_digits(entry.name):
            continue
        with contextlib.suppress(OSError):
            if entry.stat().st_uid == own and part in (entry / "cmdline").read_bytes():
                return Kept(Process.of(int(entry.name)), is_for_that=False)
    return None


def keep(data_dir: Path, kept: Kept) -> None:
    record_file(data_dir).write_text(json.dumps({"keeper": kept.keeper, "uplink": kept.uplink}))


def _started_at(pid: int) -> int:
    """0: there is no such process, or only what is left of it."""
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(numbers[18]) if state != "Z" else 0
    except (OSError, ValueError, IndexError):
        return 0


def join(kept: Kept) -> None:
    """Raises CannotStart."""
    for kind, flag in (("user", _NEW_USERS), ("mnt", _NEW_MOUNTS), ("net", _NEW_NETWORK)):
        descriptor = os.open(f"/proc/{kept.keeper.pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _call("setns", descriptor, flag)
        finally:
            os.close(descriptor)
    os.chdir("/")


def enter(outside: Outside, users: list[IdRange], groups: list[IdRange]) -> None:
    """New ones; this process is root in them. Raises CannotStart."""
    _call("unshare", _NEW_USERS)
    if is_single(users) or is_single(groups):
        Path("/proc/self/uid_map").write_text(as_lines(users[:1]))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/gid_map").write_text(as_lines(groups[:1]))
    else:
        try:
            outside.give_ids(os.getpid(), users, groups)
        except OutsideError as error:
            raise CannotStart(f"users for containers cannot be had: {error}") from error
        os.setgroups([])
    _call("unshare", _NEW_MOUNTS | _NEW_NETWORK)
    _hide_unified_cgroups()


def _hide_unified_cgroups() -> None:
    """crun refuses machines with both kinds."""
    if (_UNIFIED / "cgroup.procs").exists():
        mount("none", str(_UNIFIED), "tmpfs", 0, "size=0,mode=555")


def use_name_servers(data_dir: Path, servers: list[str]) -> None:
    """Those of the machine may listen on addresses that only the machine itself has."""
    try:
        lines = Path("/etc/resolv.conf").read_text().splitlines()
    except OSError:
        return
    kept = [line for line in lines if not line.lstrip().startswith("nameserver")]
    file = data_dir / "resolv.conf"
    file.write_text("\n".join([*kept, *(f"nameserver {each}" for each in servers)]) + "\n")
    mount(str(file), os.path.realpath("/etc/resolv.conf"), flags=MS_BIND)


def start_keeper() -> Kept:
    program = shutil.which(_KEEPER[0]) or _KEEPER[0]
    process = subprocess.Popen(
        [program, *_KEEPER[1:]], start_new_session=True, cwd="/", stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return Kept(Process.of(process.pid))


def is_connected() -> bool:
    return INTERFACE in (name for _, name in socket.if_nameindex())


def let_go(data_dir: Path, kept: Kept) -> None:
    """What still runs inside goes on without them."""
    kept.uplink.kill()
    if kept.is_for_that:
        kept.keeper.kill()
    record_file(data_dir).unlink(missing_ok=True)


def _call(name: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise CannotStart(f"namespaces of an ordinary user: {os.strerror(number)} ({name})")
