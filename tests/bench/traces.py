"""What tracing costs: the same work with it and without it, turn by turn, in processor time.

By itself: `python -m tests.bench.traces`; `make bench` has its rows.
"""

import asyncio
import io
import statistics
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from sampan.api.objects import name_of
from sampan.api.resources import PODS
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import UpSettings
from sampan.core.clock import SystemClock, thread_seconds
from sampan.core.metrics import Metrics
from sampan.core.telemetry.traces import Traces
from tests.bench.record import print_row
from tests.support.generators.api_requests import api_server, pod
from tests.support.worlds.control_plane import published_schema

ALL = "/api/v1/namespaces/default/pods"
CREATES, WARM_UP = 2000, 200
PODS_AT_ONCE, POD_TURNS = 40, 12
Block = Callable[[int], Awaitable[None]]
Create = Callable[[str], Awaitable[None]]


async def more_percent(with_it: Block, without: Block, turns: int) -> float:
    """By how much the first costs more, at the median of neighbouring turns."""
    ratios = []
    for turn in range(turns):
        spent = {}
        for key, block in (
            ((1, with_it), (0, without)) if turn % 2 else ((0, without), (1, with_it))
        ):
            began = time.process_time()
            await block(turn)
            spent[key] = time.process_time() - began
        if turn > 1:  # the first ones pay for what only first ones pay for
            ratios.append(spent[1] / spent[0])
    return 100 * (statistics.median(ratios) - 1)


async def cost_of_turns(traces: Traces, create: Create, spent: Callable[[], float]) -> float:
    """By how much one create costs more with it: turn by turn on one server, at the lower quarter,
    where nothing else came in between."""
    costs: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(CREATES):
        for is_on in (True, False) if turn % 2 else (False, True):
            traces.is_on = is_on
            began = spent()
            await create(f"web-{turn}-{is_on}".lower())
            if turn >= WARM_UP:
                costs[is_on].append(spent() - began)
    quarter = {key: statistics.quantiles(found, n=4)[0] for key, found in costs.items()}
    return 100 * (quarter[True] / quarter[False] - 1)


async def create_percent() -> float:
    """Of the server's own steps: without HTTPS, and kept in memory alone."""
    clock = SystemClock()
    traces = Traces(clock)
    async with api_server(published_schema(), clock=clock, metrics=Metrics(traces)) as api:

        async def create(name: str) -> None:
            assert (await api.post(ALL, pod(name))).status == 201

        return await cost_of_turns(traces, create, time.process_time)


async def served_create_percent(folder: Path) -> float:
    """As a client pays for it: over HTTPS, and stored durably; the client, in a thread of its own,
    is not counted."""
    clock, thread = SystemClock(), threading.get_ident()
    data = open_data_dir(str(folder))
    settings = UpSettings(data_dir=str(data.root), port=0, runtime="none")
    cluster = AllInOne(settings, data, Progress(io.StringIO(), clock), clock)
    await cluster.start()
    try:
        connection = kubeconfig.load(str(data.kubeconfig), {}, "").connection()

        async def creates() -> float:
            client = rest.connect(connection, clock=clock)

            async def create(name: str) -> None:
                wanted = {**pod(name), "metadata": {"name": name, "namespace": "default"}}
                wanted["spec"]["schedulerName"] = "nobody"
                await client.create(PODS, wanted)

            try:
                spent = partial(thread_seconds, thread)
                return await cost_of_turns(cluster._metrics.traces, create, spent)
            finally:
                await client.close()

        return await asyncio.to_thread(asyncio.run, creates())
    finally:
        await cluster.stop()


def running(client: rest.RestClient) -> Block:
    async def block(turn: int) -> None:
        names = {f"web-{turn}-{number}" for number in range(PODS_AT_ONCE)}
        revision = (await client.list(PODS, "default")).revision
        for name in names:
            wanted = {**pod(name), "metadata": {"name": name, "namespace": "default"}}
            await client.create(PODS, wanted)
        async for event in client.watch(PODS, "default", revision=revision):
            if event.object["status"].get("phase") == "Running":
                names.discard(name_of(event.object))
            if not names:
                break

    return block


async def running_percent(folder: Path) -> float:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        blocks = []
        for tracing in (True, False):
            data = open_data_dir(str(folder / str(tracing)))
            settings = UpSettings(data_dir=str(data.root), port=0, runtime="simulated", nodes=5,
                                  tracing=tracing)  # fmt: skip
            cluster = AllInOne(settings, data, Progress(io.StringIO(), clock), clock)
            await cluster.start()
            stack.push_async_callback(cluster.stop)
            connection = kubeconfig.load(str(data.kubeconfig), {}, "").connection()
            client = rest.connect(connection, clock=clock)
            stack.push_async_callback(client.close)
            blocks.append(running(client))
        return await more_percent(*blocks, POD_TURNS)


def tracing_figures() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return {
            "tracing: a create over HTTPS and on disk, % more CPU": asyncio.run(
                served_create_percent(Path(folder) / "served")
            ),
            "tracing: a create, % more CPU": asyncio.run(create_percent()),
            "tracing: create→Running simulated, % more CPU": asyncio.run(
                running_percent(Path(folder))
            ),
        }


if __name__ == "__main__":
    print_row(tracing_figures())
