"""A process of a cluster that is several: its start, the next one when that has ended, its end.

Job: start this program again as one part, hand over what it must know, hear how it went.
Invariant: of one part at most one process lives; it ends with this one.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sampan.cmd.cluster.data_dir import write_private
from sampan.cmd.cluster.processes import handover
from sampan.cmd.cluster.processes.identities import NODES
from sampan.cmd.errors import CannotStart
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.files.pipe_end import PipeEnd
from sampan.core.log import get_logger

log = get_logger(__name__)
AGAIN = Backoff(first_seconds=0.1, cap_seconds=10.0)
PATIENCE_SECONDS = 30.0  # with a part that was told to stop; nodes take what their pods take

Command = Sequence[str]


def note(path: Path, parts: Mapping[str, "PartProcess"]) -> None:
    """For `sampan status`: which processes there are. On a full disk the next change is noted."""
    found = {
        name: {"pid": part.pid, "restarts": part.restarts}
        for name, part in parts.items()
        if part.pid
    }
    try:
        write_private(path, json.dumps(found).encode())
    except OSError as error:
        log.warning("processes cannot be noted", path=path, error=error)


class PartProcess:
    """One part: its process, and the next one when that has ended."""

    def __init__(
        self,
        part: str,
        command: Command,
        words: handover.Handover,
        lock: int,
        changed: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._part, self._command, self._words = part, command, words
        self._lock, self._changed, self._clock = lock, changed, clock
        self._process: asyncio.subprocess.Process | None = None
        self._stopping, self.may_start = asyncio.Event(), asyncio.Event()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None  # of `keep`
        self.restarts = 0

    @property
    def pid(self) -> int:
        """0: none now."""
        return 0 if self._process is None else self._process.pid

    async def keep(self) -> None:
        """Until it is told to stop; or to the first process's end, where that never was ready."""
        failures = 0
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            try:
                said = await self._run_once()
            except OSError as error:  # no process, or no descriptor, is left
                said = f"the {self._part} cannot be started: {error}"
            if not self.ready.done():
                self.ready.set_exception(CannotStart(said or f"the {self._part} ended early"))
                return
            if self._stopping.is_set():
                return
            lasted = self._clock.monotonic() - began
            failures = 1 if lasted > AGAIN.cap_seconds else failures + 1
            log.warning("process exited, restarting it", part=self._part, why=said)
            self.restarts += 1
            await self._pause(AGAIN.delay(failures))

    async def started(self) -> None:
        """Raises CannotStart."""
        await asyncio.shield(self.ready)

    async def stop(self) -> None:
        self._stopping.set()
        if not self.may_start.is_set():
            # It knows nothing yet, and takes no signal for more than its end.
            self.signal(signal.SIGKILL)
            self.may_start.set()
        self.signal(signal.SIGTERM)
        if self.task is None:
            return
        is_node = self._part == NODES or handover.node_in(self._part)
        patience = None if is_node else PATIENCE_SECONDS
        done, _ = await asyncio.wait([self.task], timeout=patience)
        if not done:
            log.warning("process did not stop, killing it", part=self._part)
            self.signal(signal.SIGKILL)
            await asyncio.wait([self.task])
        if self.ready.done():
            self.ready.exception()  # whoever waited for it has seen it, or is gone

    async def kill(self) -> None:
        """Returns when it has ended; no other is started."""
        self._stopping.set()
        self.may_start.set()
        self.signal(signal.SIGKILL)
        if self.task is not None:
            await asyncio.wait([self.task])

    @property
    def has_ended(self) -> bool:
        """And no other will be started."""
        return self.task is not None and self.task.done()

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _run_once(self) -> str:
        """One process, from its start to its end; why it ended."""
        ours, theirs = os.pipe(), os.pipe()
        try:
            place = handover.PartPlace(self._part, ours[0], theirs[1], self._lock)
            environment = {k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"}
            process = await asyncio.create_subprocess_exec(
                *self._command, place.word, stdin=asyncio.subprocess.DEVNULL, env=environment,
                pass_fds=(place.life, place.answer, place.lock), start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(ours[0])
            os.close(theirs[1])
        self._process = process
        try:
            await self.may_start.wait()
            self._words.send(ours[1])
            if self._stopping.is_set():
                self.signal(signal.SIGTERM)  # it came while the process was being made
            said = await _line(theirs[0])
            if said == handover.READY:
                said = ""
                self._changed()
                if not self.ready.done():
                    self.ready.set_result(None)
            code = await process.wait()
            return said or _ending(code)
        finally:
            self._process = None
            os.close(ours[1])  # whoever is left there ends with it

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return


async def _line(descriptor: int) -> str:
    """What a process says of its start; empty where it ended without a word."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), PipeEnd(descriptor)
    )
    try:
        return (await reader.readline()).decode().strip()
    finally:
        transport.close()


def _ending(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def same_command(arguments: Sequence[str]) -> list[str]:
    """That starts this program again, as one of its parts."""
    words = [word for word in arguments if word != "--detach"]
    return [sys.executable, "-m", "sampan", *words]
