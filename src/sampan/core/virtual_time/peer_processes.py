"""The processes of this machine that are connected to this one, and for how long they have rested.

Job: connections → processes, as the kernel tells; how much of a processor they use or wait for,
    whether they have read what they were sent, when they were last seen at work; how long they, or
    this process, had to wait for a processor.
Invariant: what was done since a look long ago is taken for done just now.
Invariant: what cannot be found out (another machine, another user) is taken for idle.
Owner: who waits for them; it costs nothing while nobody does.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from sampan.core.digits import is_digits

BUSY_SHARE = 0.2  # of one processor
LEAST_SECONDS = 0.01  # between two looks that say something
MOST_SECONDS = 0.02  # and as many in which a share of a processor is work
SEARCH_SECONDS = 0.2  # between two searches for owners of connections
_ESTABLISHED, _LISTEN = "01", "0A"
_TABLES = ("net/tcp", "net/tcp6")


class PeerProcesses:
    def __init__(self, monotonic: Callable[[], float], proc: Path = Path("/proc")) -> None:
        self._now, self._proc = monotonic, proc
        self._owners: dict[str, int] = {}  # inode → process
        self._unread: set[str] = set()  # inodes of connections with bytes that nobody took
        self._searched_at = float("-inf")
        self._used: dict[int, int] = {}  # nanoseconds, at the last look
        self._looked_at = float("-inf")
        self._busy: frozenset[int] = frozenset()
        self._worked: dict[int, float] = {}  # when each was last seen at work
        self._restless: frozenset[int] = frozenset()
        self._waited: dict[str, int] = {}  # process/thread → nanoseconds, for a processor
        self.starved_seconds = 0.0  # in all looks: of each, the thread that waited longest

    def busy(self) -> frozenset[int]:
        """Those who work now, wait for a processor, or have something to read. The first look at
        one says that it does."""
        now = self._now()
        if now - self._looked_at >= LEAST_SECONDS:
            used = self._used_by(self._connected(now))
            share = BUSY_SHARE * 1e9 * min(now - self._looked_at, MOST_SECONDS)
            working = (pid for pid in used if used[pid] - self._used.get(pid, 0) > share)
            new = (pid for pid in used if pid not in self._used)
            has_to = (pid for pid in used if self._has_to_read(pid) or self._is_runnable(pid))
            self._busy = frozenset((*working, *new, *has_to))
            self._worked = {pid: self._worked.get(pid, now) for pid in used}
            self._worked |= dict.fromkeys(self._busy, now)
            self._used, self._looked_at = used, now
        return self._busy - self._restless

    def have_rested(self, seconds: float) -> bool:
        """All of them, for so long; but for those whom nobody waits for any more."""
        self.busy()
        restless = self._not_rested(seconds)
        self._restless &= restless
        return not restless - self._restless

    def give_up(self, seconds: float) -> None:
        """Nobody waits any longer for those who have not rested for so long: until they do."""
        self._restless = self._not_rested(seconds)

    def _not_rested(self, seconds: float) -> frozenset[int]:
        """As of the last look."""
        since = self._looked_at - seconds
        late = (pid for pid, when in self._worked.items() if when > since)
        return frozenset((*late, *self._busy))

    def name(self, pid: int) -> str:
        return _text(self._proc / str(pid) / "comm").strip() or "process"

    def _connected(self, now: float) -> set[int]:
        inodes = self._inodes()
        self._owners = {inode: pid for inode, pid in self._owners.items() if inode in inodes}
        unknown = inodes - self._owners.keys()
        if unknown and now - self._searched_at >= SEARCH_SECONDS:
            self._searched_at = now
            self._search(unknown)
        return {pid for pid in self._owners.values() if pid != os.getpid()}

    def _inodes(self) -> set[str]:
        """Of the sockets whose other end is a port that this process listens on."""
        own = set(self._links(os.getpid()))
        rows = [
            line.split() for table in _TABLES for line in _text(self._proc / table).splitlines()[1:]
        ]
        ports = tuple(
            f":{words[1].rpartition(':')[2]}"
            for words in rows
            if words[3] == _LISTEN and f"socket:[{words[9]}]" in own
        )
        rows = [words for words in rows if words[2].endswith(ports) and words[3] == _ESTABLISHED]
        self._unread = {words[9] for words in rows if words[4].rpartition(":")[2].strip("0")}
        return {words[9] for words in rows}

    def _search(self, inodes: set[str]) -> None:
        wanted = {f"socket:[{inode}]": inode for inode in inodes}
        known = sorted({*self._owners.values()})
        for pid in (*known, *self._others(known)):
            for link in self._links(pid):
                if (inode := wanted.pop(link, None)) is not None:
                    self._owners[inode] = pid
            if not wanted:
                return

    def _others(self, known: list[int]) -> Iterable[int]:
        """The newest first: whoever has connected has often only begun."""
        pids = (int(name) for name in os.listdir(self._proc) if is_digits(name))
        return (pid for pid in sorted(pids, reverse=True) if pid not in known)

    def _links(self, pid: int) -> list[str]:
        directory = f"{self._proc}/{pid}/fd"
        links = []
        try:
            for name in os.listdir(directory):
                links.append(os.readlink(f"{directory}/{name}"))
        except OSError:
            return links  # it is gone, or another user's
        return links

    def _used_by(self, pids: Iterable[int]) -> dict[int, int]:
        """Nanoseconds that the threads of each have had of a processor, and waited for one."""
        used, waited = dict[int, int](), dict[str, int]()
        for pid in (*pids, os.getpid()):
            used[pid] = 0
            for task, (on, waiting) in self._threads(pid):
                used[pid] += on + waiting
                waited[f"{pid}/{task}"] = waiting
        late = (waited[task] - self._waited.get(task, waited[task]) for task in waited)
        self.starved_seconds += max(late, default=0) / 1e9
        self._waited = waited
        del used[os.getpid()]
        return used

    def _threads(self, pid: int) -> Iterable[tuple[str, tuple[int, int]]]:
        """With their nanoseconds on a processor, and waiting for one."""
        try:
            for task in os.listdir(f"{self._proc}/{pid}/task"):
                on, waiting, _ = _text(self._proc / f"{pid}/task/{task}/schedstat").split()
                yield task, (int(on), int(waiting))
        except (OSError, ValueError):
            return

    def _has_to_read(self, pid: int) -> bool:
        return any(self._owners.get(inode) == pid for inode in self._unread)

    def _is_runnable(self, pid: int) -> bool:
        """The kernel counts a wait for a processor when it is over; this one goes on. Nor does who
        waits for a disk rest."""
        try:
            tasks = os.listdir(f"{self._proc}/{pid}/task")
        except OSError:
            return False
        stats = (_text(self._proc / f"{pid}/task/{task}/stat") for task in tasks)
        return any(stat.rpartition(")")[2].startswith((" R", " D")) for stat in stats)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
