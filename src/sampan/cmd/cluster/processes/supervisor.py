"""`sampan up --processes`: every part of the cluster is a process of its own, under this one.

Job: start the parts in order, start again whichever ends, stop them in the other order.
Invariant: of each part at most one process lives; none outlives this one.
Invariant: only this process writes the file that says which they are.
Owner: `sampan up`.
"""

import random
import signal
from collections.abc import Sequence
from dataclasses import replace

from sampan.cmd.cluster.choose_nodes import choose_nodes
from sampan.cmd.cluster.control_plane.control_loops import check_controllers
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node.runtime_choice import chosen_runtime
from sampan.cmd.cluster.nodes import NodeSetup, NoNodes, own_identity
from sampan.cmd.cluster.processes import handover
from sampan.cmd.cluster.processes.identities import (
    API_SERVER,
    CONTROLLERS,
    NODES,
    SCHEDULER,
    new_secrets,
)
from sampan.cmd.cluster.processes.part_process import Command, PartProcess, note
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges
from sampan.cmd.cluster.simulated.simulated_nodes import SimulatedNodes
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import RuntimeChoice, UpSettings
from sampan.core.clock import Clock
from sampan.core.tasks import Tasks, all_of


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
        words = handover.Handover(runtime, secrets)
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
            if nodes.pretend_drivers:  # as an administrator, which no part may be
                raise CannotStart("--processes: csiDrivers of --nodes-file want one process")
            return "simulated"
        if isinstance(nodes, NoNodes):
            return "none"
        return chosen_runtime(settings, self._data)

    def _note(self) -> None:
        """For `sampan status`."""
        note(self._data.processes_file, self._parts)
