"""One container as processes: conmon, which outlives us, and what it watches.

Job: start a container under conmon, know when it has ended and how, signal it, remove it.
Invariant: conmon writes the exit code and the log; whether we live then does not matter.
Invariant: a process is known by its pidfd, so that no other one with the same number is signalled.
Owner: one Monitor per started container, by whoever started or found it.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.runtime.programs import Programs
from sampan.runtime.spawn import Child, Launch, line_from, readable, spawn
from sampan.runtime.stuck_create import is_stuck

START_SECONDS = 120.0
_CALL_SECONDS = 120.0
_LOOK_SECONDS = 1.0  # so long without an answer, and it is looked who is still there
# On a busy machine conmon may still be about to tell of a runtime that has done its work.
_STUCK_LOOKS = 3
_MOST_MESSAGE = 1 << 16
_REOPEN_LOG = b"2 0 0\n"  # what conmon takes at its control pipe
LOST = 255  # the exit code where nobody saw it


class ContainerFailure(Exception):
    """The OCI runtime refused; the message is its own."""


@dataclass(frozen=True, slots=True)
class ConmonFiles:
    """What conmon leaves in a container's directory."""

    directory: Path

    @property
    def pid(self) -> Path:
        return self.directory / "pid"

    @property
    def conmon_pid(self) -> Path:
        return self.directory / "conmon.pid"

    @property
    def exit_code(self) -> Path:
        return self.directory / "exits"

    @property
    def oom(self) -> Path:
        return self.directory / "oom"

    @property
    def control(self) -> Path:
        return self.directory / "ctl"


@dataclass(frozen=True, slots=True)
class Stdio:
    log: str
    terminal: bool = False
    stdin: bool = False
    stdin_once: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    exit_code: int
    at: float
    out_of_memory: bool = False


def conmon_call(programs: Programs, container: str, files: ConmonFiles, stdio: Stdio) -> list[str]:
    options = [f"--runtime-arg={option}" for option in programs.runtime_options()]
    if stdio.terminal:
        options.append("--terminal")
    if stdio.stdin:
        options.append("--stdin")
        if not stdio.stdin_once:
            options.append("--leave-stdin-open")
    return [
        programs.conmon, "--api-version", "1", "--cid", container,
        "--cuuid", container, "--name", container, "--runtime", programs.runtime,
        "--bundle", str(files.directory), "--container-pidfile", str(files.pid),
        "--conmon-pidfile", str(files.conmon_pid), "--exit-dir", str(files.exit_code),
        "--persist-dir", str(files.directory), "--log-path", f"k8s-file:{stdio.log}",
        "--full-attach", "--no-sync-log", *options,
    ]  # fmt: skip


async def create(programs: Programs, container: str, files: ConmonFiles, stdio: Stdio) -> int:
    """The container is there then, with its pid, and waits for `start`. Raises ContainerFailure."""
    files.exit_code.mkdir(exist_ok=True)
    told, tell = os.pipe()
    go_read, go = os.pipe()
    launch = Launch(
        conmon_call(programs, container, files, stdio),
        environment=(("_OCI_SYNCPIPE", str(tell)), ("_OCI_STARTPIPE", str(go_read))),
        inherited=(tell, go_read), own_session=True, hides_unified=programs.hides_unified,
    )  # fmt: skip
    process: Child | None = None
    try:
        os.write(go, b"\0")  # it is where it is to run: it waits for nothing
        process = await spawn(launch)
        os.close(tell)
        os.close(go_read)
        tell = go_read = -1
        async with asyncio.timeout(START_SECONDS):
            said = await _answer(told, programs, container)
            await process.wait()
    except TimeoutError:
        raise ContainerFailure("the container runtime did not answer in time") from None
    except OSError as error:
        raise ContainerFailure(f"conmon cannot be started: {error}") from error
    finally:
        for number in (told, tell, go_read, go):
            if number >= 0:
                os.close(number)
        if process is not None:
            await process.end()
    return _pid_in(said)


async def _answer(told: int, programs: Programs, container: str) -> bytes:
    """Of conmon, which waits for a container that a killed runtime has left; we do not."""
    stuck = 0
    while True:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await readable(told)
            return await line_from(told)
        except TimeoutError:
            seems = await asyncio.to_thread(is_stuck, container, programs.conmon)
            stuck = stuck + 1 if seems else 0
            if stuck == _STUCK_LOOKS:
                text = f"{programs.name} was killed before it said that the container is there"
                raise ContainerFailure(text) from None


def _pid_in(said: bytes) -> int:
    try:
        answer = json.loads(said)
        pid = int(answer.get("data", answer.get("pid", -1)))
    except (ValueError, TypeError, AttributeError):
        raise ContainerFailure("conmon ended without a word") from None
    if pid > 0:
        return pid
    message = str(answer.get("message") or "the container runtime gave no reason").strip()
    raise ContainerFailure(message)


async def start(programs: Programs, container: str) -> None:
    """What `create` made goes on to its own program. Raises ContainerFailure."""
    waits_at = Path(programs.state) / container / "exec.fifo"
    if programs.name != "crun" or not _let_go(waits_at):
        await call(programs, "start", container)


def _let_go(fifo: Path) -> bool:
    """What `crun start` does, without a program for it. False: there is nobody who waits, and
    crun says better why."""
    try:
        pipe = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        os.write(pipe, b"\0")
        fifo.unlink()
    except OSError:
        return False
    finally:
        os.close(pipe)
    return True


async def call(programs: Programs, *arguments: str, seconds: float = _CALL_SECONDS) -> None:
    """One call of the OCI runtime. Raises ContainerFailure."""
    complaint = os.memfd_create("complaint")
    try:
        child = await spawn(replace(programs.call(*arguments), stderr=complaint))
        try:
            async with asyncio.timeout(seconds):
                code = await child.wait()
        except TimeoutError:
            raise ContainerFailure(f"{arguments[0]} took more than {seconds:.0f} s") from None
        finally:
            await child.end()
        if code != 0:
            said = os.pread(complaint, _MOST_MESSAGE, 0).decode(errors="replace").strip()
            raise ContainerFailure(said or "it gave no reason")
    except OSError as error:
        raise ContainerFailure(f"{programs.name} cannot be started: {error}") from error
    finally:
        os.close(complaint)


class Monitor:
    """A container that was started: waits for conmon's end, which is the container's."""

    def __init__(self, container: str, files: ConmonFiles) -> None:
        """Raises ProcessLookupError where conmon is gone: then `ended_by_file` has its word."""
        self._container, self._files = container, files
        self._conmon = open_process(_number_in(files.conmon_pid), container)
        try:
            self._process = os.pidfd_open(_number_in(files.pid))
        except (ProcessLookupError, OSError):
            self._process = -1  # ended, and conmon is about to
        self.ended = asyncio.Event()
        self._on_end: Callable[[], None] | None = None

    def watch(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        asyncio.get_running_loop().add_reader(self._conmon, self._gone)

    def _gone(self) -> None:
        self.close()
        if ended_by_file(self._container, self._files) is None:
            kill_orphan(self._container, self._files)
        self.ended.set()
        # It knows its container, which knows this one: no cycle is left to the collector of
        # garbage, which never looks at what is older (cmd/cluster/process.py).
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()

    def close(self) -> None:
        if self._conmon >= 0:
            asyncio.get_running_loop().remove_reader(self._conmon)
            os.close(self._conmon)
            self._conmon = -1
        if self._process >= 0:
            os.close(self._process)
            self._process = -1

    @property
    def pid(self) -> int:
        return _number_in(self._files.pid) if self._process >= 0 else 0

    def send(self, number: int) -> None:
        """To its first process; nothing happens where that is gone."""
        if self._process >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, number)


def ended_by_file(container: str, files: ConmonFiles) -> Ended | None:
    """What conmon wrote; None: it has written nothing (yet)."""
    file = files.exit_code / container
    try:
        code = int(file.read_text())
        return Ended(code, file.stat().st_mtime, files.oom.exists())
    except (OSError, ValueError):
        return None


def kill_orphan(container: str, files: ConmonFiles) -> None:
    """A container whose conmon was killed writes to nobody, and nobody would see its end. What is
    mounted as its root says whether the process of that number is still the container's."""
    with contextlib.suppress(OSError):
        pid = _number_in(files.pid)
        opened = os.pidfd_open(pid)
        try:
            if f"/{container}/" in Path(f"/proc/{pid}/mountinfo").read_text():
                signal.pidfd_send_signal(opened, signal.SIGKILL)
        finally:
            os.close(opened)


def reopen_log(files: ConmonFiles) -> None:
    """Raises OSError where conmon is gone."""
    pipe = os.open(files.control, os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.write(pipe, _REOPEN_LOG)
    finally:
        os.close(pipe)


def open_process(pid: int, word: str) -> int:
    """A pidfd of the process with that number, if `word` is on its command line."""
    opened = os.pidfd_open(pid)
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        command = b""
    if word.encode() not in command.split(b"\0"):
        os.close(opened)
        raise ProcessLookupError(pid)
    return opened


def _number_in(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        raise ProcessLookupError(str(file)) from None
