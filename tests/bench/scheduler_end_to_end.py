"""Pods through the real API server and the scheduler, in one process, bindings in SQLite."""

import asyncio
import random
import time
from collections.abc import Coroutine, Iterable
from pathlib import Path

from sampan.api.objects import Obj
from sampan.api.resources import NODES, PODS, PRIORITY_CLASSES
from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.inprocess import InProcessClient
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks, all_of
from sampan.scheduler.loop import Scheduler
from sampan.store.open import open_store
from tests.bench.scheduler_cases import CASES, Case, node

AT_ONCE = 64
LONGEST_SECONDS = 300.0
MOST_FILLED = 25_000  # creating more pods beforehand would take longer than all the rest


async def rates(folder: Path, nodes: int, pods: int) -> dict[str, tuple[float, float]]:
    """By case: bindings per second, and pods created and bound per second."""
    clock, metrics = SystemClock(), Metrics()
    store = await open_store(f"sqlite:///{folder / 'store.db'}", clock)
    server = ApiServer(store, Schema.load(), ApiServerSettings(), clock, metrics)
    await server.start()
    cluster = _Cluster(InProcessClient(server.as_user(User("admin", (MASTERS,)))), server)
    try:
        await cluster.add_nodes(nodes)
        return {
            case.name: await cluster.measured(case, nodes, pods)
            for case in CASES
            if nodes * case.fill <= MOST_FILLED
        }
    finally:
        await server.stop()
        await store.close()


class _Cluster:
    def __init__(self, client: InProcessClient, server: ApiServer) -> None:
        self._client, self._server = client, server

    async def add_nodes(self, count: int) -> None:
        await self._client.create(
            PRIORITY_CLASSES,
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 10,
            },
        )
        await at_once(self._add_node(node(number)) for number in range(count))

    async def _add_node(self, made: Obj) -> None:
        name = made["metadata"]["name"]
        await self._client.create(NODES, made)
        # Admission taints a new node until it is ready.
        await self._client.patch(NODES, "", name, {"spec": {"taints": None}}, patch_type="merge")

    async def measured(self, case: Case, nodes: int, pods: int) -> tuple[float, float]:
        await at_once(self._create(one) for _, one in case.before(nodes))
        made = case.pods(pods)
        fit = sum(_fits(one) for one in made)
        began = time.perf_counter()
        await at_once(self._create(one) for one in made)
        created = time.perf_counter()
        bound = await self._bound(fit)
        await self._clear()
        return fit / (bound - created), fit / (bound - began)

    async def _bound(self, wanted: int) -> float:
        """Starts a scheduler; the moment at which so many pods more have a node."""
        clock, metrics = SystemClock(), Metrics()
        client = InProcessClient(self._server.as_user(User("system:kube-scheduler", (MASTERS,))))
        scheduler = Scheduler(client, clock=clock, rng=random.Random(1), metrics=metrics)
        tasks = Tasks("bench")
        tasks.start("scheduler", scheduler.run())
        counter = metrics.counter("scheduler_schedule_attempts_total", "")
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                while counter.value("scheduled", "default-scheduler") < wanted:
                    await asyncio.sleep(0.005)
            return time.perf_counter()
        finally:
            await tasks.stop()

    async def _create(self, pod: Obj) -> None:
        meta = {"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]}
        spec = dict(pod["spec"])
        if spec.pop("priority", 0):
            spec["priorityClassName"] = "high"
        await self._client.create(PODS, {**pod, "metadata": meta, "spec": spec}, "default")

    async def _clear(self) -> None:
        names = [one["metadata"]["name"] for one in (await self._client.list(PODS)).items]
        await at_once(self._client.delete(PODS, "default", name, grace_seconds=0) for name in names)


def _fits(pod: Obj) -> bool:
    return pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] != "64"


async def at_once(calls: Iterable[Coroutine[None, None, object]]) -> None:
    waiting = iter(calls)

    async def worker() -> None:
        for call in waiting:
            await call

    await all_of([worker() for _ in range(AT_ONCE)])
