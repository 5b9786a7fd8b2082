"""One workload of one size, measured: by lines, or by processor time and memory.

Job: build the cluster, prepare, measure, take it down.
"""

import asyncio
import atexit
import functools
import gc
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import uvloop

from sampan.api.schema.published import Schema
from sampan.cmd.cluster.process import settle_memory
from sampan.core.clock import Clock, SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.testing.kit.process.plane import ensure_pki
from tests.growth.line_counts import Counts, counted
from tests.growth.workloads import Workload
from tests.growth.world import World
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


@functools.cache
def schema() -> Schema:
    return Schema.load()


@functools.cache
def keys() -> Path:
    """Made once for all worlds."""
    path = Path(tempfile.mkdtemp(prefix="sampan-growth-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    ensure_pki(path)
    return path


# On virtual time, which costs nothing: what was prepared has had all its consequences by then, and
# so has what is measured. Otherwise chance decides how many events are counted with what.
SETTLE_SECONDS = 5.0


async def _life(
    workload: Workload, n: int, clock: Clock, span: AbstractContextManager[None]
) -> None:
    world = World(workload.nodes(n), keys(), schema(), clock)
    world.plane.rng.seed(n)
    if workload.starts:
        with span:
            await world.start()
            await workload.run(world, n)
    else:
        await world.start()
        await workload.prepare(world, n)
        await _settle(clock)
        with span:
            await workload.run(world, n)
            await _settle(clock)
    await world.stop()


async def _settle(clock: Clock) -> None:
    if isinstance(clock, LoopClock):
        await clock.sleep(SETTLE_SECONDS)


def lines_of(workload: Workload, n: int) -> Counts:
    """On virtual time: the same each time."""
    counts: Counts = Counts()
    virtual_time.run(_life(workload, n, LoopClock(), counted(counts)))
    return counts


@dataclass(slots=True)
class Spent:
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0  # without the garbage collector
    kib: float = 0.0  # of resident pages: what the start let go is used again first
    collector_seconds: float = 0.0
    blocks: int = 0  # of Python's allocator: exact, whatever was let go before


def spent_by(workload: Workload, n: int) -> Spent:
    """With the garbage collector as `sampan up` has it: every 700 dicts it would look at a heap
    that grows, and that would be measured."""
    schema()
    settle_memory()
    spent = Spent()
    if workload.virtual:
        virtual_time.run(_life(workload, n, LoopClock(), _measured(spent)))
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_life(workload, n, SystemClock(), _measured(spent)))
    return spent


@contextmanager
def _measured(spent: Spent) -> Iterator[None]:
    gc.collect()
    began = 0.0

    def collect(phase: str, _about: dict[str, int]) -> None:
        """Its work grows with the heap, in steps: apart from ours, both can be judged."""
        nonlocal began
        if phase == "start":
            began = time.process_time()
        else:
            spent.collector_seconds += time.process_time() - began

    gc.callbacks.append(collect)
    blocks, kib = sys.getallocatedblocks(), _resident_kib()
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    spent.cpu_seconds = time.process_time() - cpu - spent.collector_seconds
    spent.wall_seconds = time.perf_counter() - wall
    gc.callbacks.remove(collect)
    gc.collect()
    spent.kib, spent.blocks = _resident_kib() - kib, sys.getallocatedblocks() - blocks


def _resident_kib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4.0
