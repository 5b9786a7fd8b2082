"""A directory of manifests as a source of pods, or a single file.

Job: deliver the pods of all good files, at once when a file changes, and look at everything now and
    then in case an event was lost.
Invariant: a file that is being written is not taken before it is whole: its writer closed it, it
    was moved here, or nothing about it changed for a while.
Invariant: a bad file is reported once per content; what it said when it was good stays, and so do
    the pods of all others.
Invariant: the first set is delivered even if the directory is not there: it is empty then. It
    waits for files that may not be whole yet.
Owner: Kubelet runs it.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from sampan.api.objects import Obj
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.file_events import Change, Changes, FileEvents
from sampan.core.log import get_logger
from sampan.kubelet.sources.manifests import BadManifest

log = get_logger(__name__)

RESCAN_SECONDS = 20.0
# Nobody said that the file is whole: it is when it stayed the same for so long.
QUIET_SECONDS = 0.2
# Somebody has it open for writing.
OPEN_SECONDS = 2.0
FIRST_SET_SECONDS = 10.0
LARGEST_BYTES = 10 * 1024 * 1024

Deliver = Callable[[Sequence[Obj]], None]
Decode = Callable[[bytes, str], Obj]  # (content, path) → pod; raises BadManifest
Stamp = tuple[int, int, int]  # when it was changed, how long it is, which file it is


@dataclass(slots=True)
class _File:
    pod: Obj | None = None  # what it said when it was last good
    taken: Stamp | None = None  # of the content that was read
    seen: Stamp | None = None  # of the content that may not be whole yet …
    since: float = 0.0  # … and since when it is like that
    writing: bool = False  # changed, and its writer has not closed it
    whole: bool = False  # its writer closed it, or it was moved here


@dataclass(slots=True)
class _Look:
    """What a look at the directory found."""

    again_after: float = RESCAN_SECONDS
    changed: bool = False
    pending: bool = False  # a file may not be whole yet


class FileSource:
    def __init__(self, path: str | Path, *, deliver: Deliver, decode: Decode, clock: Clock) -> None:
        self._path, self._deliver, self._decode, self._clock = Path(path), deliver, decode, clock
        self._files: dict[str, _File] = {}
        self._complained: object = None
        self._delivered, self._began = False, clock.monotonic()

    async def run(self) -> None:
        """Until cancelled."""
        events = FileEvents()
        try:
            while True:
                directory = self._path.parent if self._path.is_file() else self._path
                with events.watch(directory) as changes:
                    await self._follow(changes)
        finally:
            events.close()

    async def _follow(self, changes: Changes) -> None:
        """One watch: until the directory itself changes, or for one rescan's time."""
        deadline = self._clock.monotonic() + RESCAN_SECONDS
        while True:
            look = await self.look()
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return
            for change in await changes.wait(min(look.again_after, left)):
                self._note(change)
                if not change.name:
                    return

    def _note(self, change: Change) -> None:
        if self._is_ours(change.name):
            file = self._files.setdefault(change.name, _File())
            file.whole = change.closed or change.moved_in
            file.writing = not file.whole

    async def look(self) -> _Look:
        """Read what is new, drop what is gone, and deliver the set where it changed."""
        names = self._names()
        look = _Look(changed=not self._delivered)
        if names is None:
            return look
        for name in [name for name in self._files if name not in names]:
            look.changed |= self._files.pop(name).pod is not None
        for name in names:
            self._look_at(name, self._files.setdefault(name, _File()), look)
        # The first set ends what it does not name: it must not miss a file that is just written.
        patient = self._clock.monotonic() < self._began + FIRST_SET_SECONDS
        if look.changed and (self._delivered or not look.pending or not patient):
            self._delivered = True
            self._deliver([file.pod for _, file in sorted(self._files.items()) if file.pod])
        return look

    def _names(self) -> list[str] | None:
        """None: it cannot be told now; what was there stays."""
        try:
            if self._path.is_file():
                return [self._path.name]
            found = sorted(os.listdir(self._path))
        except FileNotFoundError:
            return []
        except OSError as error:
            if self._complained != error.errno:
                self._complained = error.errno
                log.warning("manifests cannot be read", path=str(self._path), error=error)
            return None
        self._complained = None
        return [name for name in found if self._is_ours(name)]

    def _is_ours(self, name: str) -> bool:
        return bool(name) and not name.startswith(".")

    def _look_at(self, name: str, file: _File, look: _Look) -> None:
        path = self._path if self._path.is_file() else self._path / name
        try:
            stamp = _stamp(path)
        except OSError:
            return  # it went away meanwhile: the next look sees that
        if stamp is None or stamp == file.taken:
            file.seen = None
            return
        left = self._left_to_wait(file, stamp)
        if left > 0:
            look.again_after, look.pending = min(look.again_after, left), True
            return
        self._take(path, file, stamp, look)

    def _left_to_wait(self, file: _File, stamp: Stamp) -> float:
        # Waiting is not by the wall clock, which may be set back meanwhile.
        now = self._clock.monotonic()
        if stamp != file.seen:
            # Its own time counts, too: what was written long ago is not being written.
            age = max(self._clock.now() - stamp[0] / 1e9, 0.0)
            file.seen, file.since = stamp, now - (age if file.taken is None else 0.0)
        if file.whole:
            return 0.0
        quiet = OPEN_SECONDS if file.writing else QUIET_SECONDS
        return file.since + quiet - now

    def _take(self, path: Path, file: _File, stamp: Stamp, look: _Look) -> None:
        try:
            pod = self._decode(path.read_bytes()[:LARGEST_BYTES], str(path))
            if _stamp(path) != stamp:
                look.again_after, look.pending = min(look.again_after, QUIET_SECONDS), True
                return  # it was changed while it was read
        except FileNotFoundError:
            return
        except (BadManifest, OSError) as error:
            log.warning("manifest was refused", path=str(path), why=error)
        else:
            file.pod, look.changed = pod, True
        file.taken, file.seen, file.writing, file.whole = stamp, None, False, False


def _stamp(path: Path) -> Stamp | None:
    """None: no regular file."""
    found = path.stat()
    if not path.is_file():
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
