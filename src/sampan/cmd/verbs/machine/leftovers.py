"""What earlier runs left on the machine: of data directories that are gone, with nobody to ask.

Job: look at bridges, tables, cgroups, processes and sockets that bear sampan's mark; say which have
    no cluster any more, and which command removes each.
Invariant: what a cluster that runs, or that is known and only stopped, may need is never named.
Invariant: what is another user's is not judged: whoever may not look into a directory does not know
    that nothing is there.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sampan.cmd.cluster.cluster_names import known_clusters
from sampan.cmd.cluster.node.places import other_nodes
from sampan.cmd.cluster.nodes import NODES_DIRECTORY
from sampan.cmd.verbs.machine.checks import Check
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

CGROUPS = Path("/sys/fs/cgroup")
RUNS = Path("/run")
LOOK_SECONDS = 10.0
_MARK = lazy_pattern(r"sampan ([0-9a-f]{12})[0-9a-f]{4}")
_FOLDER = "sampan-" + "[0-9a-f]" * 12
_TABLE = lazy_pattern(r"(sampan[0-9]+)-[a-z]+")
_RUNTIME = lazy_pattern(rb"(/[^\0 ]+)/containerd/")


@dataclass(frozen=True, slots=True)
class Link:
    name: str
    alias: str
    master: str


@dataclass(frozen=True, slots=True)
class Found:
    """What bears the mark; owners are known by the beginning of their path's hash."""

    running: frozenset[str]  # whose lock somebody holds
    known: frozenset[str]  # those, and whose directory is there
    links: tuple[Link, ...]
    tables: tuple[tuple[str, str], ...]  # family and name
    cgroups: Mapping[str, tuple[int, ...]]  # by path: the processes inside
    runtimes: Mapping[int, str]  # by process: the directory that its command line names
    sockets: tuple[str, ...]  # directories of sockets whose own paths were too long


def owner(directory: str) -> str:
    return hashlib.sha256(os.path.realpath(directory).encode()).hexdigest()[:12]


def checks(data_dir: str) -> list[Check]:
    found = list(judge(look(data_dir)))
    if found or os.geteuid() == 0:
        return found or [Check("leftovers", True, "none")]
    return [Check("leftovers", True, "none of yours; what is of another user is not looked at")]


def judge(found: Found) -> Iterator[Check]:
    """Processes first: what they hold can go only after them. Pure."""
    ended = _ended(found)
    if ended:
        pids = [str(pid) for pid in sorted(ended)]
        text = f"{len(pids)} of a cluster whose directory is gone: {', '.join(pids[:10])}"
        yield _leftover("processes", text, ("kill", "-9", *pids))
    yield from _cgroups_of_nobody(found, ended)
    yield from _networks_of_nobody(found)
    for path in found.sockets:
        if path[-12:] not in found.known:
            yield _leftover(path, "sockets of nobody", ("rm", "-r", path))


def _ended(found: Found) -> frozenset[int]:
    """Processes whose directory is gone. Other people's runtimes look alike: only what something
    else on the machine says is ours."""
    marked = {path[-12:] for path in (*found.cgroups, *found.sockets)}
    marked |= {mark[1] for link in found.links if (mark := _MARK.fullmatch(link.alias))}
    gone = {owner(path) for path in found.runtimes.values()} & marked - found.known
    ended = {pid for pid, directory in found.runtimes.items() if owner(directory) in gone}
    inside = [pid for path, pids in found.cgroups.items() if path[-12:] in gone for pid in pids]
    return frozenset(ended.union(inside))


def _cgroups_of_nobody(found: Found, ended: frozenset[int]) -> Iterator[Check]:
    idle: dict[str, list[str]] = {}  # one name in several hierarchies
    for path, inside in found.cgroups.items():
        if path[-12:] not in found.known and ended.issuperset(inside):
            idle.setdefault(os.path.basename(path), []).append(path)
    for name, paths in idle.items():
        command = ("find", *paths, "-depth", "-type", "d", "-delete")
        yield _leftover(name, "a cgroup of nobody", command)


def _networks_of_nobody(found: Found) -> Iterator[Check]:
    marks = {link.name: _MARK.fullmatch(link.alias) for link in found.links}
    used = {link.master for link in found.links}  # pods are on it
    idle = {name for name, mark in marks.items() if mark and mark[1] not in found.known} - used
    for name in sorted(idle):
        yield _leftover(name, "a bridge of nobody", ("ip", "link", "delete", name))
    for family, name in found.tables:
        bridge = match[1] if (match := _TABLE.fullmatch(name)) else ""
        # Where pods have another network, a table has no bridge: it may be of a cluster that runs.
        is_alone = bridge not in marks and not found.running
        if bridge and (bridge in idle or is_alone):
            command = ("nft", "delete", "table", family, name)
            yield _leftover(f"{family} {name}", "rules of nobody", command)


def _leftover(what: str, text: str, command: tuple[str, ...]) -> Check:
    remedy = " ".join(command) if len(command) < 10 else f"{' '.join(command[:9])} …"
    return Check(what, False, text, remedy, command, is_in_the_way=False)


def look(data_dir: str) -> Found:
    held = list(_held_directories())
    runtimes = {pid: path for pid, path in _runtimes() if _is_ours(Path("/proc", str(pid)))}
    directories = [data_dir, *(str(path) for _, path in known_clusters(os.environ, Path.cwd()))]
    directories += [*held, *runtimes.values()]
    directories += [str(node) for path in directories for node in _nodes_below(Path(path))]
    running = {owner(path) for path in held}
    known = {owner(path) for path in directories if is_known(path)}
    cgroups = [path for pattern in ("", "*/") for path in CGROUPS.glob(f"{pattern}{_FOLDER}")]
    # Only root makes bridges and tables in the machine's own network.
    links, tables = (_links(), _all_tables()) if os.geteuid() == 0 else ((), ())
    return Found(
        frozenset(running),
        frozenset(running | known),
        links,
        tables,
        {str(path): tuple(sorted(_inside(path))) for path in cgroups if _is_ours(path)},
        runtimes,
        tuple(str(path) for path in RUNS.glob(_FOLDER) if _is_ours(path)),
    )


def is_known(directory: str) -> bool:
    """Of a cluster, or of a node of one; also where that cannot be seen."""
    path = Path(directory)
    cluster = path.parent.parent if path.parent.name == NODES_DIRECTORY else path
    try:
        return (cluster / "format").stat() is not None
    except PermissionError:
        return True
    except OSError:
        return False


def _nodes_below(directory: Path) -> list[Path]:
    try:
        return other_nodes(directory)
    except OSError:
        return []


def _is_ours(path: Path) -> bool:
    """Root judges all."""
    try:
        return os.geteuid() in (0, path.stat().st_uid)
    except OSError:  # it is gone
        return False


def _links() -> tuple[Link, ...]:
    return tuple(
        Link(item["ifname"], item.get("ifalias") or "", item.get("master") or "")
        for item in _answer("ip", "-j", "link")
    )


def _all_tables() -> tuple[tuple[str, str], ...]:
    return tuple(_tables(_answer("nft", "-j", "list", "tables")))


def _held_directories() -> Iterator[str]:
    """The lock of a data directory is held by whoever runs its cluster."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"sampan" not in (process / "cmdline").read_bytes():
                continue
            links = [os.readlink(descriptor) for descriptor in (process / "fd").iterdir()]
        except OSError:
            continue  # it ended while we looked
        for target in links:
            if target.endswith("/lock") and os.path.exists(os.path.dirname(target) + "/format"):
                yield os.path.dirname(target)


def _runtimes() -> Iterator[tuple[int, str]]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command_line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        program = os.path.basename(command_line.partition(b"\0")[0])
        match = _RUNTIME.search(command_line) if program.startswith(b"containerd") else None
        if match is not None:
            yield int(process.name), match[1].decode(errors="replace")


def _inside(cgroup: Path) -> Iterable[int]:
    for folder, _, files in os.walk(cgroup):
        if "cgroup.procs" in files:
            try:
                yield from map(int, Path(folder, "cgroup.procs").read_text().split())
            except OSError:
                continue


def _tables(answer: list[Any]) -> Iterator[tuple[str, str]]:
    for item in answer:
        if table := item.get("table"):
            yield table["family"], table["name"]


def _answer(*command: str) -> list[Any]:
    """Nothing, where the program is not there or may not look."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=LOOK_SECONDS)
        answer: Any = json.loads(done.stdout or b"[]")
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    if isinstance(answer, dict):
        answer = answer.get("nftables") or []
    return [item for item in answer if isinstance(item, dict)]
