"""Other programs, started from a large process at the price of a small one.

Job: start a program with its pipes, and tell when it ends.
Invariant: this process is not copied for it, however large it is (vfork).
Invariant: a program is known by its pidfd; nobody else waits for it.
"""

import asyncio
import ctypes
import os
import subprocess
from collections.abc import Sequence
from functools import partial
from typing import IO

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.pipe_end import own_end
from sampan.runtime.own_thread import in_own_thread

NOTHING, PIPE = subprocess.DEVNULL, subprocess.PIPE
CGROUPS = "/sys/fs/cgroup"
UNIFIED = f"{CGROUPS}/unified"
_MOST_LINE = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS, _MS_REC, _MS_SLAVE = 0x20000, 0x4000, 1 << 19


@dataclass(frozen=True, slots=True)
class Launch:
    command: Sequence[str]
    stdin: int = NOTHING
    stdout: int = NOTHING
    stderr: int = NOTHING
    environment: tuple[tuple[str, str], ...] = ()
    inherited: tuple[int, ...] = ()  # descriptors that it has under the same numbers
    own_session: bool = False
    # crun refuses machines with both kinds of cgroups: it gets a view of the files without one.
    hides_unified: bool = False


class Child:
    """A program that was started. Whoever has it ends it, at the latest in a `finally`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._pidfd = os.pidfd_open(process.pid)
        self._pipes: list[asyncio.BaseTransport] = []
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None

    async def open_pipes(self) -> None:
        process = self._process
        self.stdin = await self._writer(process.stdin) if process.stdin is not None else None
        self.stdout = await self._reader(process.stdout) if process.stdout is not None else None
        self.stderr = await self._reader(process.stderr) if process.stderr is not None else None

    async def _reader(self, pipe: IO[bytes]) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), own_end(pipe)
        )
        self._pipes.append(transport)
        return reader

    async def _writer(self, pipe: IO[bytes]) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await loop.connect_write_pipe(lambda: protocol, own_end(pipe))
        self._pipes.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)

    async def wait(self) -> int:
        """Its exit code; negative: the signal that ended it."""
        if self.returncode is None:
            await readable(self._pidfd)
        if self.returncode is None:  # no other waiter was faster
            self.returncode = self._process.wait()
            os.close(self._pidfd)
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            self._process.kill()

    async def end(self) -> None:
        """Kill it where it has not ended, and close its pipes."""
        self.kill()
        await self.wait()
        for pipe in self._pipes:
            pipe.close()


async def spawn(launch: Launch) -> Child:
    """Raises OSError."""
    if launch.hides_unified:
        hidden = partial(_start_hidden, launch)
        process = await in_own_thread("spawn", hidden, _end_unwanted)
    else:
        process = _popen(launch)
    child = Child(process)
    opened = False
    try:
        await child.open_pipes()
        opened = True
    finally:
        if not opened:
            await child.end()
    return child


def _popen(launch: Launch) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        launch.command, bufsize=0, stdin=launch.stdin, stdout=launch.stdout, stderr=launch.stderr,
        env={"PATH": os.defpath, **dict(launch.environment)}, pass_fds=launch.inherited,
        start_new_session=launch.own_session,
    )  # fmt: skip


def _start_hidden(launch: Launch) -> "subprocess.Popen[bytes]":
    """What a thread sees of the file system can be its own, and its children inherit it."""
    _hide_unified()
    return _popen(launch)


def _end_unwanted(process: "subprocess.Popen[bytes]") -> None:
    with process:
        process.kill()


def _hide_unified() -> None:
    """In a mount namespace of this thread's own. Raises OSError."""
    _check(_libc.unshare(_CLONE_NEWNS), "unshare")
    slave = ctypes.c_ulong(_MS_REC | _MS_SLAVE)  # nothing goes back; all else stays as it is
    _check(_libc.mount(None, CGROUPS.encode(), None, slave, None), CGROUPS)
    # What crun makes there all the same goes with the namespace.
    filled = _libc.mount(b"none", UNIFIED.encode(), b"tmpfs", ctypes.c_ulong(0), b"size=64k")
    _check(filled, UNIFIED)


def _check(done: int, what: str) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


async def readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    watched = os.dup(descriptor)  # of its own: a loop knows one reader for each
    loop.add_reader(watched, _tell, ready)
    try:
        await ready
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def _tell(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def line_from(descriptor: int) -> bytes:
    """One line of a pipe, or what there is when its writers are gone."""
    message = b""
    while not message.endswith(b"\n") and len(message) < _MOST_LINE:
        await readable(descriptor)
        more = os.read(descriptor, _MOST_LINE)
        if not more:
            break
        message += more
    return message
