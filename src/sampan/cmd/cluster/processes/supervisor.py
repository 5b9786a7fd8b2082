"""`sampan up --processes`: every part of the cluster is a process of its own, under this one.

Job: start the parts in order, start again whichever ends, stop them in the other order.
Invariant: of each part at most one process lives; none outlives this one.
Invariant: only this process writes the file that says which they are.
Owner: `sampan up`.
"""

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from sampan.cmd.cluster.choose_nodes import choose_nodes
from sampan.cmd.cluster.control_plane.control_loops import check_controllers
from sampan.cmd.cluster.data_dir import DataDir, write_private
from sampan.cmd.cluster.nodes import NodeSetup, NoNodes, own_identity
from sampan.cmd.cluster.processes import handover
from sampan.cmd.cluster.processes.identities import (
    API_SERVER,
    CONTROLLERS,
    NODES,
    SCHEDULER,
    new_secrets,
)
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges
from sampan.cmd.cluster.simulated.simulated_nodes import SimulatedNodes
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import RuntimeChoice, UpSettings
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks, all_of

log = get_logger(__name__)
AGAIN = Backoff(first_seconds=0.1, cap_seconds=10.0)
PATIENCE_SECONDS = 30.0  # with a part that was told to stop; nodes take what their pods take

Command = Sequence[str]


class ProcessCluster:
    def __init__(
        self,
        settings: UpSettings,
        data: DataDir,
        progress: Progress,
        clock: Clock,
        lock: int,
        command: Command,
    ) -> None:
        """`lock`: the descriptor that holds the data directory; `command`: starts this program
        again with the same flags."""
        self._settings, self._data, self._progress = settings, data, progress
        self._clock, self._lock, self._command = clock, lock, command
        self._secrets = new_secrets()
        self._parts: dict[str, PartProcess] = {}
        self._tasks = Tasks("processes")

    async def start(self) -> None:
        """Returns when the API answers and every node is Ready; raises CannotStart."""
        runtime = self._chosen_runtime()
        scheduler = [SCHEDULER] if self._settings.scheduler else []
        nodes = [NODES] if runtime != "none" else []
        # All at once: they load their programs, and hear what they need when the API answers.
        others = [*scheduler, CONTROLLERS, *nodes]
        for part in (API_SERVER, *others):
            self._start(part, runtime)
        await self._ready([API_SERVER])
        for part in others:
            self._parts[part].may_start.set()
        await self._ready(others)

    async def stop(self) -> None:
        """Whoever calls the API goes before the API does."""
        for group in ([NODES], [SCHEDULER, CONTROLLERS], [API_SERVER]):
            await all_of(self._parts[part].stop() for part in group if part in self._parts)
        await self._tasks.stop()
        self._data.processes_file.unlink(missing_ok=True)

    def hurry(self) -> None:
        if NODES in self._parts:
            self._parts[NODES].signal(signal.SIGTERM)

    def _start(self, part: str, runtime: RuntimeChoice) -> None:
        secrets = self._secrets if part == API_SERVER else {part: self._secrets[part]}
        words = handover.Words(runtime, secrets)
        started = PartProcess(part, self._command, words, self._lock, self._note, self._clock)
        self._parts[part] = started
        started.task = self._tasks.start(part, started.keep())
        if part == API_SERVER:
            started.may_start.set()

    async def _ready(self, parts: Sequence[str]) -> None:
        """Raises CannotStart, also of one that ends before its turn."""
        await all_of(self._parts[part].started() for part in parts)

    def _chosen_runtime(self) -> RuntimeChoice:
        """What every part is told; mistakes in the settings are said before anything starts."""
        ranges = chosen_ranges(self._settings.ranges, self._data.record())
        settings = replace(self._settings, ranges=ranges)
        check_controllers(settings)
        if settings.store.startswith("memory"):
            raise CannotStart(
                "--processes needs a store that outlives a process: leave --store memory: out"
            )
        if settings.scheduler_config:
            from sampan.cmd.cluster.schedulers import configuration_in

            configuration_in(settings.scheduler_config)
        identity = own_identity(settings)
        setup = NodeSetup(settings, self._data, identity, self._progress, self._clock)
        nodes = choose_nodes(setup, random.Random())
        if isinstance(nodes, SimulatedNodes):
            return "simulated"
        if isinstance(nodes, NoNodes):
            return "none"
        return "cri" if settings.runtime == "auto" else settings.runtime

    def _note(self) -> None:
        """For `sampan status`."""
        living = {
            name: {"pid": part.pid, "restarts": part.restarts}
            for name, part in self._parts.items()
            if part.pid
        }
        write_private(self._data.processes_file, json.dumps(living).encode())


class PartProcess:
    """One part: its process, and the next one when that has ended."""

    def __init__(
        self,
        part: str,
        command: Command,
        words: handover.Words,
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
            said = await self._run_once()
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
        patience = None if self._part == NODES else PATIENCE_SECONDS
        done, _ = await asyncio.wait([self.task], timeout=patience)
        if not done:
            log.warning("process did not stop, killing it", part=self._part)
            self.signal(signal.SIGKILL)
            await asyncio.wait([self.task])
        if self.ready.done():
            self.ready.exception()  # whoever waited for it has seen it, or is gone

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
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
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
