"""One trial of the lab: a workload, nodes and a scheduler configuration, from begin to end.

Job: a cluster on virtual time in this process; create each pod when it comes; note what happens;
    print the record as JSON. `sampan lab run` starts one process for each trial, so that sets are
    in one order each time.
Invariant: with one seed a trial has one history; only the plugins' costs are the machine's.
"""

import asyncio
import dataclasses
import io
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

import orjson

from sampan.api.errors import AlreadyExists, ApiError
from sampan.api.objects import Obj, namespace_of
from sampan.api.resources import EVENTS, NAMESPACES, NODES, PODS
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.scenario import nodes_in, read_document
from sampan.cmd.lab.arrivals import Arrival, arrivals
from sampan.cmd.lab.ledger import Ledger
from sampan.cmd.lab.workload import Workload, workload_of
from sampan.cmd.settings import UpSettings
from sampan.cmd.simulation.virtual_time import VirtualTime
from sampan.core import log
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.core.virtual_time.loop import SteppedLoop

IDLE_STEP_SECONDS = 60.0
QUIET_SECONDS = 600.0  # without a change: whatever is Pending now stays so
USAGE = "WORKLOAD"


@dataclass(frozen=True, slots=True)
class TrialSettings:
    workload: str  # files
    nodes: str
    scheduler_config: str = ""
    seed: int | None = None  # None: as the workload says


def run_trial(settings: TrialSettings) -> Obj:
    """Raises CannotStart."""
    workload = read_document(settings.workload, USAGE, workload_of)
    if settings.seed is not None:
        workload = dataclasses.replace(workload, seed=settings.seed)
    with (
        tempfile.TemporaryDirectory(prefix="sampan-lab-") as directory,
        asyncio.Runner(loop_factory=lambda: SteppedLoop(virtual=True)) as runner,
    ):
        return runner.run(_run(settings, workload, directory))


async def _run(settings: TrialSettings, workload: Workload, directory: str) -> Obj:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppedLoop)
    time = VirtualTime(loop)
    fails = any(shape.outages for shape in nodes_in(settings.nodes))
    up = UpSettings(
        data_dir=directory, port=0, store="memory:", runtime="simulated",
        nodes_file=settings.nodes, scheduler_config=settings.scheduler_config, clock="virtual",
        tracing=False, measures_plugins=True,
        quiet_nodes=not fails,  # where none can, nobody has to ask all of them every few seconds
    )  # fmt: skip
    silent, rng = Progress(io.StringIO(), SystemClock()), random.Random(workload.seed)
    cluster = AllInOne(up, open_data_dir(directory), silent, time.clock, rng, time)
    try:
        await cluster.start()
        await time.settle()
        return await _Trial(cluster.admin(), time, workload, rng).record(cluster)
    finally:
        await cluster.stop()


class _Trial:
    def __init__(
        self, client: Client, time: VirtualTime, workload: Workload, rng: random.Random
    ) -> None:
        self._client, self._time, self._workload = client, time, workload
        self._began = time.clock.now()
        self._ledger = Ledger(self._began)
        self._informers = Informers(client, clock=time.clock, rng=rng)
        self._refused: list[str] = []

    async def record(self, cluster: AllInOne) -> Obj:
        self._follow()
        coming = arrivals(self._workload)
        try:
            for namespace in sorted({namespace_of(arrival.object) for arrival in coming}):
                await self._ensure_namespace(namespace)
            await self._create_objects()
            await self._live(coming)
        finally:
            await self._informers.stop()
        self._ledger.close(self._time.clock.now())
        lives = [dataclasses.asdict(life) for life in self._ledger.lives.values()]
        return {
            "seed": self._workload.seed,
            "seconds": self._elapsed,
            "pods": sorted(lives, key=lambda life: (life["arrived"], life["name"])),
            "nodes": [dataclasses.asdict(node) for node in self._ledger.nodes.values()],
            "moments": [dataclasses.asdict(moment) for moment in self._ledger.moments],
            "refused": self._refused,
            "plugins": cluster.plugin_costs(),
        }

    @property
    def _elapsed(self) -> float:
        return self._time.clock.now() - self._began

    def _follow(self) -> None:
        now, ledger = self._time.clock.now, self._ledger
        pods, nodes = self._informers.of(PODS), self._informers.of(NODES)
        events = self._informers.of(EVENTS, field_selector="reason=Preempted")
        pods.on_change(lambda old, new: ledger.pod(old, new, now()))
        nodes.on_change(lambda _old, new: ledger.node(new, now()) if new is not None else None)
        events.on_change(lambda _old, new: ledger.event(new) if new is not None else None)
        self._informers.start()

    async def _create_objects(self) -> None:
        """Raises CannotStart."""
        for number, (resource, obj) in enumerate(self._workload.objects):
            try:
                await self._client.create(resource, obj)
            except AlreadyExists as error:
                if resource is not NAMESPACES:  # those are made where pods come to them
                    raise CannotStart(f"objects[{number}] of the workload: {error}") from error
            except ApiError as error:
                raise CannotStart(f"objects[{number}] of the workload: {error}") from error
        await self._time.settle()

    async def _live(self, coming: Sequence[Arrival]) -> None:
        until = self._workload.until_seconds
        for at, together in groupby(coming, key=lambda arrival: arrival.at_seconds):
            if at > until:
                break
            await self._time.advance(max(0.0, at - self._elapsed))
            for arrival in together:
                await self._create(arrival)
        await self._wait_for_the_end(until)

    async def _wait_for_the_end(self, until: float) -> None:
        await self._time.settle()
        quiet, seen = 0.0, len(self._ledger.moments)
        while self._elapsed < until and not (self._ledger.is_quiet() and quiet >= QUIET_SECONDS):
            step = min(IDLE_STEP_SECONDS, until - self._elapsed)
            await self._time.advance(step)
            quiet = quiet + step if len(self._ledger.moments) == seen else 0.0
            seen = len(self._ledger.moments)

    async def _create(self, arrival: Arrival) -> None:
        try:
            await self._client.create(arrival.resource, arrival.object)
        except ApiError as error:
            self._refused.append(str(error))

    async def _ensure_namespace(self, name: str) -> None:
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        with suppress(AlreadyExists):
            await self._client.create(NAMESPACES, obj)


def main(arguments: Sequence[str]) -> int:
    log.set_up("error")
    given: dict[str, Any] = orjson.loads(arguments[0])
    try:
        record = run_trial(TrialSettings(**given))
    except CannotStart as error:
        record = {"error": str(error)}
    sys.stdout.buffer.write(orjson.dumps(record))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
