"""A part of the tree of cgroups that was given to an ordinary user, as systemd does (Delegate=yes).

Job: which cgroup is his to divide, and what can be limited in it (pure, of what was seen); look;
    make it ready: who is in it goes to a leaf, since what has processes gives no controllers on.
Invariant: no process is moved but ours and those that started it: what is shared with others is
    not taken.
Invariant: only version 2 can be given away. One of version 1 or a mix is refused, with the reason.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from sampan.core.fast_dataclass import dataclass

MOUNT = Path("/sys/fs/cgroup")
LEAF = "sampan-itself"
WANTED = ("cpu", "memory", "pids")  # what Kubernetes limits, beside huge pages
_OWNER_WRITES = 0o200


@dataclass(frozen=True, slots=True)
class SeenCgroup:
    place: str  # from the mount on: /user.slice/…/run-1.scope; empty: the root of what is shown
    is_ours: bool  # to divide, and to put processes in
    controllers: tuple[str, ...]
    others: bool  # there are processes in it which neither are ours nor have started us
    is_leaf: bool = False  # its parent was made ready by another sampan


@dataclass(frozen=True, slots=True)
class Delegated:
    place: str
    controllers: tuple[str, ...]

    @property
    def lacking(self) -> list[str]:
        return [name for name in WANTED if name not in self.controllers]


@dataclass(frozen=True, slots=True)
class NotDelegated:
    why: str


def judge(seen: SeenCgroup | None) -> Delegated | NotDelegated:
    """Pure. None: there is no tree of version 2 alone."""
    if seen is None:
        return NotDelegated("this machine has cgroups of version 1")
    if not seen.is_ours:
        return NotDelegated(f"the cgroup {seen.place or '/'} is not yours")
    if not seen.controllers:
        return NotDelegated(f"nothing can be limited in the cgroup {seen.place or '/'}")
    if seen.others and not seen.is_leaf:
        return NotDelegated(f"other programs are in the cgroup {seen.place or '/'}")
    return Delegated(seen.place, seen.controllers)


def own_place(said: str) -> str | None:
    """By /proc/self/cgroup; None where it is in no tree of version 2."""
    for line in said.splitlines():
        if line.startswith("0::/"):
            return line.removeprefix("0::").rstrip("/")
    return None


def look(uid: int, pid: int, mount: Path = MOUNT, proc: Path = Path("/proc")) -> SeenCgroup | None:
    """At the cgroup of a process, or at its parent, if that one was made ready before."""
    place = own_place((proc / str(pid) / "cgroup").read_text())
    if place is None or not (mount / "cgroup.controllers").exists():
        return None
    is_leaf = place.rpartition("/")[2] == LEAF
    if is_leaf:
        place = place.rpartition("/")[0]
    folder = Path(f"{mount}{place}")
    try:
        inside = set(_numbers(folder / "cgroup.procs"))
        controllers = tuple((folder / "cgroup.controllers").read_text().split())
    except OSError:  # a part of the tree that is not shown here
        return SeenCgroup(place, False, (), True)
    others = bool(inside - set(_ancestors(pid, proc)))
    return SeenCgroup(place, _is_ours(folder, uid), controllers, others, is_leaf)


def is_of_before(place: str, root: str, seen: SeenCgroup, uid: int, mount: Path = MOUNT) -> bool:
    """Pods of an earlier process are there, below `root`, and ours may go there, too: the kernel
    asks whether we may write the nearest cgroup above both."""
    above = os.path.commonpath([f"{mount}{place}", f"{mount}{seen.place}"])
    try:
        return (
            Path(f"{mount}{place}{root}").is_dir()
            and _is_ours(Path(f"{mount}{place}"), uid)
            and _may_write(Path(above, "cgroup.procs"), uid)
        )
    except OSError:
        return False


def make_ready(given: Delegated, mount: Path = MOUNT) -> None:
    """Raises OSError."""
    folder = Path(f"{mount}{given.place}")
    leaf = folder / LEAF
    leaf.mkdir(exist_ok=True)
    for pid in _numbers(folder / "cgroup.procs"):
        (leaf / "cgroup.procs").write_text(str(pid))
    enabled = (folder / "cgroup.subtree_control").read_text().split()
    missing = [f"+{name}" for name in given.controllers if name not in enabled]
    if missing:
        (folder / "cgroup.subtree_control").write_text(" ".join(missing))


def offered_controllers(place: str, mount: Path = MOUNT) -> frozenset[str] | None:
    """What can be limited in a cgroup; None: in trees of version 1, or where it is not there."""
    try:
        return frozenset(Path(f"{mount}{place}/cgroup.controllers").read_text().split())
    except OSError:
        return None


def _is_ours(folder: Path, uid: int) -> bool:
    files = (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control")
    return all(_may_write(file, uid) for file in files)


def _may_write(file: Path, uid: int) -> bool:
    found = os.stat(file)
    return found.st_uid == uid and bool(found.st_mode & _OWNER_WRITES)


def _ancestors(pid: int, proc: Path) -> Iterator[int]:
    """Itself first."""
    while pid > 1:
        yield pid
        try:
            pid = int((proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            return


def _numbers(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()]
