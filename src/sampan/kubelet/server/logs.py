"""Container logs in the CRI format: choose lines, write them as `kubectl logs` shows them.

Job: options → lines (pure), and reading a file that grows, is rotated, and ends with its container.
Invariant: how the file's bytes were split into reads never changes what comes out.
Invariant: with `follow`, every line of the log is seen once, across a rotation too.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from sampan.api.log_options import LogOptions
from sampan.core.file_events import Changes, FileEvents
from sampan.core.patterns import lazy_pattern

BLOCK_BYTES = 64 * 1024
# As kuberuntime's logs.go: whether the container still runs is asked once a second …
CHECK_SECONDS = 1.0
# … and soon after a writer closed the file, because the runtime says "running" a little longer.
CHECK_SOON_SECONDS, CHECKS_SOON = 0.05, 20


# The head of a whole line, up to its text. It begins with the newline before it, because that is
# what the regex engine looks for quickest.
_WHOLE_LINE = lazy_pattern(rb"\n\S++ (?:stdout|stderr) F ")


class LogFormatter:
    """Raw blocks in, what the client sees out. Owned by one reader."""

    def __init__(self, options: LogOptions, now: float) -> None:
        self._timestamps = options.timestamps
        self._since = options.since(now)
        self._stream = b"" if options.stream == "All" else options.stream.lower().encode()
        self._left = options.limit_bytes
        self._unfinished = b""
        self._at_line_start = True
        self.full = False  # the byte limit is reached: nothing more will come out

    def feed(self, block: bytes) -> bytes:
        lines, newline, self._unfinished = (self._unfinished + block).rpartition(b"\n")
        if not newline:
            return b""
        return self._limited(self._plain(lines) or b"".join(map(self._line, lines.split(b"\n"))))

    def finish(self) -> bytes:
        """A last line without its end: the writer was cut off, but what is there is shown."""
        rest, self._unfinished = self._unfinished, b""
        return self._limited(self._line(rest)) if rest else b""

    def _plain(self, lines: bytes) -> bytes:
        """All of them in one go, where nothing is to be left out, added or joined; else nothing."""
        if self._timestamps or self._stream or self._since is not None:
            return b""
        shown, found = _WHOLE_LINE.subn(b"\n", b"\n" + lines)
        return shown[1:] + b"\n" if found == lines.count(b"\n") + 1 else b""

    def _limited(self, shown: bytes) -> bytes:
        if self._left is not None:
            shown = shown[: self._left]
            self._left -= len(shown)
            self.full = self._left == 0
        return shown

    def _line(self, raw: bytes) -> bytes:
        parts = raw.split(b" ", 3)
        if len(parts) < 3 or parts[1] not in (b"stdout", b"stderr"):
            return b""  # not a log line: a machine that lost power leaves such
        if self._stream and parts[1] != self._stream:
            return b""
        if self._since is not None and moment(parts[0]) < self._since:
            return b""
        text = parts[3] if len(parts) == 4 else b""
        partial = parts[2].split(b":")[0] == b"P"
        if self._timestamps and self._at_line_start:
            text = _nine_digits(parts[0]) + b" " + text
        self._at_line_start = not partial
        return text if partial else text + b"\n"


def moment(timestamp: bytes) -> float:
    """Seconds since 1970 of RFC 3339 with nanoseconds; 0 where it is none."""
    try:
        whole = datetime.fromisoformat(timestamp.decode()[:19] + _zone(timestamp))
    except ValueError:
        return 0.0
    digits = timestamp[20:].rstrip(b"Z").split(b"+")[0].split(b"-")[0]
    fraction = float(b"0." + digits) if timestamp[19:20] == b"." and digits.isdigit() else 0.0
    return whole.timestamp() + fraction


def _zone(timestamp: bytes) -> str:
    if timestamp.endswith(b"Z"):
        return "+00:00"
    return timestamp[-6:].decode() if timestamp[-6:-5] in (b"+", b"-") else "+00:00"


def _nine_digits(timestamp: bytes) -> bytes:
    """The runtime leaves out trailing zeros, or writes its zone as an offset; shown timestamps all
    have the same form."""
    head, rest = timestamp[:19], timestamp[19:]
    digits = rest[1:].rstrip(b"Z").split(b"+")[0].split(b"-")[0] if rest[:1] == b"." else b""
    zone = rest[1 + len(digits) :] if rest[:1] == b"." else rest
    return head + b"." + digits.ljust(9, b"0") + (b"Z" if zone == b"+00:00" else zone)


def tail_start(file: BinaryIO, lines: int) -> int:
    """Where the last `lines` lines begin, reading no more of the file than they take."""
    position = file.seek(0, os.SEEK_END)
    found = 0
    while position > 0:
        start = max(0, position - BLOCK_BYTES)
        file.seek(start)
        block = file.read(position - start)
        found += block.count(b"\n")
        position = start
        if found > lines:
            return position + _after_newline(block, found - lines)
    return 0


def _after_newline(block: bytes, count: int) -> int:
    at = 0
    for _ in range(count):
        at = block.index(b"\n", at) + 1
    return at


def has_log(path: str | Path) -> bool:
    return Path(path).exists()


async def read_log(
    path: str | Path,
    options: LogOptions,
    *,
    now: float,
    events: FileEvents,
    is_running: Callable[[], Awaitable[bool]],
) -> AsyncGenerator[bytes, None]:
    """The log as the client sees it, in blocks; FileNotFoundError where there is none."""
    formatter = LogFormatter(options, now)
    file = _open(path)
    try:
        size = os.fstat(file.fileno()).st_size
        if options.tail_lines is not None:
            file.seek(tail_start(file, options.tail_lines))
        if not options.follow:
            async for shown in _blocks(file, formatter, size):
                yield shown
            if last := formatter.finish():
                yield last
            return
        # Watching before reading: what is written in between is an event, not a gap.
        with events.watch(Path(path).parent) as changes:
            ended = _Ended(Path(path).name, changes, is_running)
            await ended.check()
            while not formatter.full:
                async for shown in _blocks(file, formatter, None):
                    yield shown
                if formatter.full or ended.for_good:
                    break
                file = _successor(file, path) or file
                if _has_more(file):
                    continue
                await ended.wait()
            if not formatter.full and (last := formatter.finish()):
                yield last
    finally:
        file.close()


async def _blocks(
    file: BinaryIO, formatter: LogFormatter, until: int | None
) -> AsyncGenerator[bytes, None]:
    """Everything up to `until` (or, for now, to the end of the file)."""
    while not formatter.full:
        room = BLOCK_BYTES if until is None else min(BLOCK_BYTES, until - file.tell())
        block = file.read(room) if room > 0 else b""
        if not block:
            return
        if shown := formatter.feed(block):
            yield shown
        await asyncio.sleep(0)  # a long log must not keep the others from running


class _Ended:
    """Waits for more, and finds out when there will be no more."""

    def __init__(
        self, name: str, changes: Changes, is_running: Callable[[], Awaitable[bool]]
    ) -> None:
        self._name, self._changes, self._is_running = name, changes, is_running
        self._checks_soon = 0
        self.for_good = False  # the container had ended before what was then read

    async def wait(self) -> None:
        seconds = CHECK_SOON_SECONDS if self._checks_soon else CHECK_SECONDS
        changes = await self._changes.wait(seconds)
        ours = [change for change in changes if change.name in ("", self._name)]
        if any(change.closed for change in ours):
            self._checks_soon = CHECKS_SOON
        if not ours or self._checks_soon or any(change.name == "" for change in ours):
            self._checks_soon = max(0, self._checks_soon - 1)
            await self.check()

    async def check(self) -> None:
        self.for_good = not await self._is_running()


def _has_more(file: BinaryIO) -> bool:
    return os.fstat(file.fileno()).st_size > file.tell()


def _successor(file: BinaryIO, path: str | Path) -> BinaryIO | None:
    """The next file, if the log was rotated. The runtime writes to the old one until it was told
    to open the new one, so the new one is there only after the last line of the old."""
    opened = os.fstat(file.fileno())
    try:
        current = os.stat(path)
    except FileNotFoundError:
        return None  # between the rename and the re-open
    if (current.st_dev, current.st_ino) == (opened.st_dev, opened.st_ino):
        if current.st_size < file.tell():
            file.seek(0)  # truncated in place
        return None
    if _has_more(file):
        return None  # first the rest of the old one
    file.close()
    return _open(path)


def _open(path: str | Path) -> BinaryIO:
    return open(path, "rb")
