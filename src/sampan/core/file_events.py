"""What happens in a directory, as it happens: inotify where there is one, else a short poll.

Job: `watch(directory, …)`, then `await changes.wait(seconds)`.
Invariant: one inotify instance per owner, however many watch (instances are scarce: often 128).
Invariant: an event that came between two waits is seen by the second one.
Invariant: where inotify is missing or full, a wait ends after POLL_SECONDS and says "look again".
Owner: whoever builds it closes it; each `Changes` belongs to one waiter.
"""

import asyncio
import ctypes
import os
import struct
from pathlib import Path

from sampan.core.fast_dataclass import dataclass

POLL_SECONDS = 0.2

_MODIFY, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_Q_OVERFLOW, _IGNORED = 0x4000, 0x8000
_MASK = _MODIFY | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_MASK |= _DELETE_SELF | _MOVE_SELF
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Change:
    """Something happened to `name` in the directory; "" is the directory itself, or unknown."""

    name: str
    closed: bool = False  # a writer closed the file: usually its last word
    moved_in: bool = False  # it came here by a rename, whole


LOOK_AGAIN = Change("")


class Changes:
    """What one waiter has not seen yet. Use as a context manager."""

    def __init__(self, owner: "FileEvents", watches: list[int | None]) -> None:
        self._owner, self._watches = owner, watches
        self._unseen: dict[Change, None] = {}  # a set that keeps the order
        self._waiter: asyncio.Future[None] | None = None

    def __enter__(self) -> "Changes":
        return self

    def __exit__(self, *_: object) -> None:
        for watch in self._watches:
            self._owner.forget(self, watch)

    async def wait(self, seconds: float) -> list[Change]:
        """What changed since the last call; [] when nothing did for so long."""
        if None in self._watches:
            await asyncio.sleep(min(seconds, POLL_SECONDS))
            return [LOOK_AGAIN]
        if not self._unseen:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait([self._waiter], timeout=seconds)
            finally:
                self._waiter = None
        seen = list(self._unseen)
        self._unseen.clear()
        return seen

    def add(self, change: Change) -> None:
        self._unseen.pop(change, None)  # what comes again is seen at its last place
        self._unseen[change] = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class FileEvents:
    """One inotify instance, opened when somebody first watches."""

    def __init__(self) -> None:
        self._libc: ctypes.CDLL | None = None
        self._fd = -1
        self._watching: dict[int, set[Changes]] = {}

    def watch(self, *directories: str | Path) -> Changes:
        """Of several, a change does not say in which it was."""
        watches = [self._add(os.fsencode(directory)) for directory in directories]
        changes = Changes(self, watches)
        for watch in watches:
            if watch is not None:
                self._watching.setdefault(watch, set()).add(changes)
        return changes

    def forget(self, changes: Changes, watch: int | None) -> None:
        others = self._watching.get(watch) if watch is not None else None
        if watch is None or others is None:
            return
        others.discard(changes)
        if not others:
            del self._watching[watch]
            if self._libc is not None:
                self._libc.inotify_rm_watch(self._fd, watch)

    def close(self) -> None:
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._libc = None
        for changes in [item for waiting in self._watching.values() for item in waiting]:
            changes.add(LOOK_AGAIN)
        self._watching.clear()

    def _add(self, directory: bytes) -> int | None:
        if not self._open() or self._libc is None:
            return None
        watch = self._libc.inotify_add_watch(self._fd, directory, _MASK)
        return watch if watch >= 0 else None

    def _open(self) -> bool:
        if self._fd >= 0:
            return True
        # Asked for here and not at import: only a real node needs it, and only Linux has it.
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "inotify_init1"):
            return False
        fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if fd < 0:
            return False  # too many instances on this machine: poll
        self._libc, self._fd = libc, fd
        asyncio.get_running_loop().add_reader(fd, self._read)
        return True

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
            at += length
            self._tell(watch, mask, name)

    def _tell(self, watch: int, mask: int, name: str) -> None:
        if mask & _Q_OVERFLOW:
            for waiting in self._watching.values():
                for changes in waiting:
                    changes.add(LOOK_AGAIN)
        elif not mask & _IGNORED:
            for changes in self._watching.get(watch, ()):
                closed, moved_in = bool(mask & _CLOSE_WRITE), bool(mask & _MOVED_TO)
                changes.add(Change(name, closed, moved_in))
