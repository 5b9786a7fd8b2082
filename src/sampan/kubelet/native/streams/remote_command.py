"""exec and attach: a client's channels and a process of a container, connected.

Job: copy both ways until the process ends, then say how it ended.
Invariant: the client's leaving ends what was started for it; a container that was attached to goes
    on.
Invariant: everything that the process wrote is sent before its status.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import termios
from dataclasses import replace
from pathlib import Path

from sampan.core.files.pipe_end import PipeEnd
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.local_streams import StreamOptions, exit_status
from sampan.kubelet.streams.channels import (
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    Arrived,
    Channels,
)
from sampan.runtime.error_messages import process_message
from sampan.runtime.spawn import NOTHING, PIPE, Child, Launch, spawn

_CHUNK_BYTES = 64 * 1024
_ATTACH_STDOUT, _ATTACH_STDERR = 2, 3  # how conmon marks what it sends
_DRAIN_SECONDS = 2.0


def failure(why: str) -> bytes:
    message = f"Internal error occurred: {why}"
    return json.dumps({
        "metadata": {}, "status": "Failure", "message": message, "reason": "InternalError",
        "details": {"causes": [{"message": why}]}, "code": 500,
    }).encode()  # fmt: skip


def size_of(payload: bytes) -> tuple[int, int] | None:
    """Rows and columns, of what the client writes when its window changes."""
    try:
        said = json.loads(payload)
        return int(said["Height"]) & 0xFFFF, int(said["Width"]) & 0xFFFF
    except (ValueError, KeyError, TypeError):
        return None


class ExecSession:
    """One command in a container, for one client."""

    def __init__(self, launch: Launch, pid_file: Path, options: StreamOptions) -> None:
        self._launch, self._pid_file, self._options = launch, pid_file, options
        self._terminal = -1  # our end of it
        self._process: Child | None = None
        self._complaint = b""

    async def run(self, channels: Channels) -> None:
        tasks = Tasks("exec")
        try:
            process = self._process = await self._start()
            tasks.start("stdin", self._copy_in(channels))
            copies = [
                tasks.start("output", self._copy_out(reader, channel, channels))
                for reader, channel in await self._outputs(process)
            ]
            code = await process.wait()
            await asyncio.wait(copies, timeout=_DRAIN_SECONDS) if copies else None
            await tasks.stop()  # `finish` reads to the client's end: nobody else may
            await channels.finish(self._status(code))
        except OSError as error:  # ConnectionError is one: then nobody hears it
            await tasks.stop()
            with contextlib.suppress(OSError):
                await channels.finish(failure(f"error executing command in container: {error}"))
        finally:
            await tasks.stop()
            await self._end()

    async def _start(self) -> Child:
        if self._options.tty:
            with _ConsoleSocket(self._pid_file.with_suffix(".console")) as console:
                *head, container = self._launch.command
                command = (*head, "--console-socket", console.path, container)
                launch = replace(self._launch, command=command, stderr=PIPE)
                process = self._process = await spawn(launch)
                self._terminal = await console.terminal(process)
            return process
        stdin = PIPE if self._options.stdin else NOTHING
        return await spawn(replace(self._launch, stdin=stdin, stdout=PIPE, stderr=PIPE))

    async def _outputs(self, process: Child) -> list[tuple[asyncio.StreamReader, int]]:
        if self._terminal >= 0:
            reader = asyncio.StreamReader()
            await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader),
                PipeEnd(os.dup(self._terminal)),
            )
            return [(reader, STDOUT)]
        outputs = ((process.stdout, STDOUT), (process.stderr, STDERR))
        return [(reader, channel) for reader, channel in outputs if reader is not None]

    async def _copy_out(
        self, reader: asyncio.StreamReader, channel: int, channels: Channels
    ) -> None:
        """What comes before there is a process is the OCI runtime's own complaint."""
        wanted = self._options.stdout if channel == STDOUT else self._options.stderr
        waiting = b""
        with contextlib.suppress(OSError):  # a terminal without a process, a client that is gone
            while data := await reader.read(_CHUNK_BYTES):
                waiting += data
                if self._pid_file.exists():
                    await channels.send(channel, waiting) if wanted else None
                    waiting = b""
        if waiting and self._pid_file.exists() and wanted:
            with contextlib.suppress(OSError):
                await channels.send(channel, waiting)
        elif waiting:
            self._complaint += waiting

    async def _copy_in(self, channels: Channels) -> None:
        while (arrived := await channels.receive()) is not None:
            if arrived.channel == STDIN:
                await self._give(arrived)
            elif arrived.channel == RESIZE:
                self._resize(arrived.payload)
        await self._end()  # the client is gone

    async def _give(self, arrived: Arrived) -> None:
        process = self._process
        with contextlib.suppress(OSError):  # the process does not read any more
            if self._terminal >= 0:
                await asyncio.to_thread(os.write, self._terminal, arrived.payload)
            elif process is not None and process.stdin is not None:
                process.stdin.write(arrived.payload)
                await process.stdin.drain()
                if arrived.closed:
                    process.stdin.close()

    def _resize(self, payload: bytes) -> None:
        size = size_of(payload)
        if size is None or self._terminal < 0:
            return
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def _status(self, code: int) -> bytes:
        if not self._pid_file.exists():
            said = self._complaint.decode(errors="replace").strip()
            said = process_message(said, self._options.command[0]) or said
            return failure(
                "error executing command in container: failed to exec in container: "
                f"{said or 'it could not be started'}"
            )
        return json.dumps(exit_status(code if code >= 0 else 128 - code)).encode()

    async def _end(self) -> None:
        process = self._process
        if process is not None:
            if process.returncode is None:
                with contextlib.suppress(OSError, ValueError):
                    os.kill(int(self._pid_file.read_text()), signal.SIGKILL)
            await process.end()
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1


class _ConsoleSocket:
    """Where the OCI runtime hands over our end of a container's terminal."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # By way of an open directory: the paths of sockets are short.
        self._directory = os.open(file.parent, os.O_PATH | os.O_DIRECTORY)
        self.path = f"/proc/{os.getpid()}/fd/{self._directory}/{file.name}"

    def __enter__(self) -> "_ConsoleSocket":
        self._listening.setblocking(False)
        self._listening.bind(self.path)
        self._listening.listen(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        os.close(self._directory)
        self._file.unlink(missing_ok=True)

    async def terminal(self, process: Child) -> int:
        """-1 where the runtime ended instead: its complaint says why."""
        tasks = Tasks("console")
        loop = asyncio.get_running_loop()
        ended = tasks.start("end", process.wait())
        came = tasks.start("accept", loop.sock_accept(self._listening))
        try:
            await asyncio.wait((ended, came), return_when=asyncio.FIRST_COMPLETED)
            if not came.done():
                return -1
            connection, _ = came.result()
            with connection:
                connection.setblocking(True)
                connection.settimeout(_DRAIN_SECONDS)
                _, given, _, _ = socket.recv_fds(connection, 1024, 1)
            return given[0] if given else -1
        finally:
            await tasks.stop()


class AttachSession:
    """A client at the standard streams of a container's first process."""

    def __init__(self, directory: Path, options: StreamOptions, *, stdin_once: bool) -> None:
        """`stdin_once`: the end of the client's input is the end of the container's."""
        self._directory, self._options, self._stdin_once = directory, options, stdin_once

    async def run(self, channels: Channels) -> None:
        tasks = Tasks("attach")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)
        try:
            self._connect(connection)
            tasks.start("stdin", self._copy_in(channels, connection))
            await self._copy_out(channels, connection)
            await tasks.stop()  # `finish` reads to the client's end: nobody else may
            await channels.finish(json.dumps(exit_status(0)).encode())
        except OSError as error:
            await tasks.stop()
            with contextlib.suppress(OSError):
                await channels.finish(failure(f"error attaching to container: {error}"))
        finally:
            await tasks.stop()
            connection.close()

    def _connect(self, connection: socket.socket) -> None:
        """By way of an open directory: the paths of sockets are short."""
        opened = os.open(self._directory, os.O_PATH | os.O_DIRECTORY)
        try:
            connection.connect(f"/proc/self/fd/{opened}/attach")
        finally:
            os.close(opened)

    async def _copy_out(self, channels: Channels, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while packet := await loop.sock_recv(connection, _CHUNK_BYTES):
            if packet[0] == _ATTACH_STDOUT and self._options.stdout:
                await channels.send(STDOUT, packet[1:])
            elif packet[0] == _ATTACH_STDERR and self._options.stderr:
                await channels.send(STDERR, packet[1:])

    async def _copy_in(self, channels: Channels, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            while (arrived := await channels.receive()) is not None:
                if arrived.channel == STDIN and self._options.stdin:
                    if arrived.payload:
                        await loop.sock_sendall(connection, arrived.payload)
                    if arrived.closed and not self._stdin_once:
                        break  # as containerd: the client has said all, and is let go
                    if arrived.closed:
                        connection.shutdown(socket.SHUT_WR)
                elif arrived.channel == RESIZE:
                    self._resize(arrived.payload)
        except OSError:
            return  # the container has ended
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)  # the client is gone, or goes

    def _resize(self, payload: bytes) -> None:
        size = size_of(payload)
        if size is None:
            return
        with contextlib.suppress(OSError):
            pipe = os.open(self._directory / "ctl", os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(pipe, f"1 {size[0]} {size[1]}\n".encode())
            finally:
                os.close(pipe)
