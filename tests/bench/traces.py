"""What tracing costs: the same work with it and without it, turn by turn, in processor time.

By itself: `python -m tests.bench.traces`; `make bench` has its rows.
"""

import asyncio
import io
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from sampan.api.objects import name_of
from sampan.api.resources import PODS
from sampan.client import kubeconfig, rest
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import UpSettings
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.telemetry.traces import NO_TRACES, Traces
from sampan.testing.generators.api_requests import Api, api_server, pod
from sampan.testing.worlds.control_plane import published_schema
from tests.bench.record import print_row

ALL = "/api/v1/namespaces/default/pods"
CREATES, CREATE_TURNS = 200, 30
PODS_AT_ONCE, POD_TURNS = 40, 12
Block = Callable[[int], Awaitable[None]]


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


def creating(api: Api) -> Block:
    async def block(turn: int) -> None:
        for number in range(CREATES):
            name = f"web-{turn}-{number}"
            assert (await api.post(ALL, pod(name))).status == 201
            await api.delete(f"{ALL}/{name}?gracePeriodSeconds=0")

    return block


async def create_percent() -> float:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        blocks = [
            creating(
                await stack.enter_async_context(
                    api_server(published_schema(), clock=clock, metrics=Metrics(traces))
                )
            )
            for traces in (Traces(clock), NO_TRACES)
        ]
        return await more_percent(*blocks, CREATE_TURNS)


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
            "tracing: a create, % more CPU": asyncio.run(create_percent()),
            "tracing: create→Running simulated, % more CPU": asyncio.run(
                running_percent(Path(folder))
            ),
        }


if __name__ == "__main__":
    print_row(tracing_figures())
