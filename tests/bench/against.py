"""`make bench AGAINST=KUBECONFIG`: the same workloads on this sampan and on any other cluster.

Job: in a namespace of its own on each cluster, make, watch and delete objects through one client;
    print a table with both columns. Figures are for people: nothing is asserted.
Invariant: nothing outside of that namespace is touched, and it is removed at the end.
"""

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, name_of
from sampan.api.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, SERVICE_ACCOUNTS
from sampan.client import kubeconfig, rest
from sampan.client.rest import RestClient
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks, all_of
from tests.support.parts.sampan_process import SampanProcess

AT_ONCE = 16
LONGEST_SECONDS = 900.0
PAUSE_IMAGE = "registry.k8s.io/pause:3.10"


@dataclass(frozen=True)
class Size:
    rounds: int = 10  # pods one after the other
    pods: int = 50  # at once; one node takes 110
    maps: int = 500
    image: str = PAUSE_IMAGE


class Bench:
    """The workloads, on one cluster."""

    def __init__(self, client: RestClient, namespace: str, size: Size) -> None:
        self._client, self._namespace, self._size = client, namespace, size
        self._clock = SystemClock()

    async def figures(self) -> dict[str, float]:
        row = await self._pods_in_turn()
        row |= await self._pods_at_once()
        row |= await self._deployment()
        return row | await self._config_maps()

    async def _pods_in_turn(self) -> dict[str, float]:
        running, gone = [], []
        for number in range(self._size.rounds):
            name = f"turn-{number}"
            running.append(await self._timed(lambda name=name: self._run([name])))
            gone.append(await self._timed(lambda name=name: self._remove([name])))
        return {
            "create→Running p50, ms": 1000 * statistics.median(running),
            "create→Running worst, ms": 1000 * max(running),
            "delete→gone p50, ms": 1000 * statistics.median(gone),
        }

    async def _pods_at_once(self) -> dict[str, float]:
        names = [f"many-{number}" for number in range(self._size.pods)]
        made = await self._timed(lambda: self._run(names))
        gone = await self._timed(lambda: self._remove(names))
        count = len(names)
        return {
            f"{count} pods create→Running, s": made,
            f"{count} pods create→Running, /s": count / made,
            f"{count} pods delete→gone, s": gone,
        }

    async def _deployment(self) -> dict[str, float]:
        count, obj = self._size.pods, _deployment(self._size)

        async def make() -> None:
            await self._client.create(DEPLOYMENTS, obj, self._namespace)
            await self._until(self._available, count)

        async def remove() -> None:
            await self._client.delete(
                DEPLOYMENTS, self._namespace, name_of(obj), propagation="Background"
            )
            await self._until(self._pod_count, 0)

        return {
            f"Deployment of {count} available, s": await self._timed(make),
            f"Deployment of {count} deleted, s": await self._timed(remove),
        }

    async def _config_maps(self) -> dict[str, float]:
        count = self._size.maps
        since = (await self._client.list(CONFIG_MAPS, self._namespace)).revision
        sent: dict[str, float] = {}
        seen: dict[str, float] = {}
        tasks = Tasks("bench")
        try:
            watching = tasks.start("watch", self._watch_maps(since, seen, count))
            made = await self._timed(lambda: self._make_maps(sent))
            await watching
        finally:
            await tasks.stop()
        lists = [
            await self._timed(lambda: self._client.list(CONFIG_MAPS, self._namespace))
            for _ in range(10)
        ]
        delays = [seen[name] - began for name, began in sent.items()]
        return {
            f"{count} ConfigMaps created, /s": count / made,
            "write→seen by a watch p50, ms": 1000 * statistics.median(delays),
            f"list of {count} p50, ms": 1000 * statistics.median(lists),
        }

    async def _make_maps(self, sent: dict[str, float]) -> None:
        numbers = iter(range(self._size.maps))

        async def some() -> None:
            for number in numbers:
                name = f"map-{number}"
                sent[name] = self._clock.monotonic()
                obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                            "data": {"text": "x" * 500}}  # fmt: skip
                await self._client.create(CONFIG_MAPS, obj, self._namespace)

        await all_of(some() for _ in range(AT_ONCE))

    async def _watch_maps(self, since: int, seen: dict[str, float], count: int) -> None:
        watch = self._client.watch(CONFIG_MAPS, self._namespace, revision=since)
        async with aclosing(watch) as events:
            async for event in events:
                if event.type == "ADDED" and name_of(event.object).startswith("map-"):
                    seen[name_of(event.object)] = self._clock.monotonic()
                    if len(seen) == count:
                        return

    async def _run(self, names: list[str]) -> None:
        """Until a watch shows all of them Running."""
        since = (await self._client.list(PODS, self._namespace)).revision
        left = iter(names)

        async def some() -> None:
            for name in left:
                await self._client.create(PODS, _pod(name, self._size), self._namespace)

        tasks = Tasks("bench")
        try:
            making = tasks.start("create", all_of(some() for _ in range(AT_ONCE)))
            missing = set(names)
            async for kind, pod in self._pods_since(since):
                if kind != "DELETED" and (pod.get("status") or {}).get("phase") == "Running":
                    missing.discard(name_of(pod))
                if not missing:
                    break
            await making
        finally:
            await tasks.stop()

    async def _remove(self, names: list[str]) -> None:
        since = (await self._client.list(PODS, self._namespace)).revision
        left = iter(names)

        async def some() -> None:
            for name in left:
                await self._client.delete(PODS, self._namespace, name)

        await all_of(some() for _ in range(AT_ONCE))
        missing = set(names)
        async for kind, pod in self._pods_since(since):
            if kind == "DELETED":
                missing.discard(name_of(pod))
            if not missing:
                return

    async def _pods_since(self, revision: int) -> AsyncIterator[tuple[str, Obj]]:
        while True:
            watch = self._client.watch(PODS, self._namespace, revision=revision)
            async with aclosing(watch) as events:
                async for event in events:
                    revision = int(event.object["metadata"]["resourceVersion"])
                    if event.type != "BOOKMARK":
                        yield event.type, event.object

    async def _available(self) -> int:
        [found] = (await self._client.list(DEPLOYMENTS, self._namespace)).items
        return (found.get("status") or {}).get("availableReplicas") or 0

    async def _pod_count(self) -> int:
        return len((await self._client.list(PODS, self._namespace)).items)

    async def _until(self, count: Callable[[], Awaitable[int]], wanted: int) -> None:
        while await count() != wanted:
            await self._clock.sleep(0.05)

    async def _timed(self, work: Callable[[], Awaitable[object]]) -> float:
        began = self._clock.monotonic()
        async with asyncio.timeout(LONGEST_SECONDS):
            await work()
        return self._clock.monotonic() - began


def _pod(name: str, size: Size) -> Obj:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 1,
                     "containers": [{"name": "main", "image": size.image}]}}  # fmt: skip


def _deployment(size: Size) -> Obj:
    labels = {"app": "bench"}
    pod = _pod("", size)
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    spec = {"replicas": size.pods, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "bench"},
            "spec": spec}  # fmt: skip


@asynccontextmanager
async def own_namespace(client: RestClient) -> AsyncIterator[str]:
    """With the account that pods there need; gone at the end."""
    clock, name = SystemClock(), f"sampan-bench-{random.randrange(16**8):08x}"
    metadata: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(NAMESPACES, metadata)
    try:
        while True:
            try:
                await client.get(SERVICE_ACCOUNTS, name, "default")
                break
            except NotFound:
                await clock.sleep(0.05)
        yield name
    finally:
        await client.delete(NAMESPACES, "", name)


async def figures_of(path: str, size: Size) -> dict[str, float]:
    """Of the cluster that a kubeconfig leads to."""
    connection = kubeconfig.load(path, os.environ, str(Path.home())).connection()
    client = rest.connect(connection, clock=SystemClock(), user_agent="sampan-bench")
    try:
        async with own_namespace(client) as namespace:
            return await Bench(client, namespace, size).figures()
    finally:
        await client.close()


def table(ours: dict[str, float], theirs: dict[str, float]) -> str:
    lines = [f"{'':<36} {'this sampan':>12} {'the other':>12} {'ratio':>8}"]
    for name, value in ours.items():
        other = theirs[name]
        lines.append(f"{name:<36} {value:12.2f} {other:12.2f} {value / other:8.2f}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="this sampan beside another cluster")
    parser.add_argument("kubeconfig", help="of the other cluster")
    parser.add_argument("--ours", default="", help="a kubeconfig, instead of a new `sampan up`")
    parser.add_argument("--runtime", default="auto", help="of the new one (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=Size.rounds)
    parser.add_argument("--pods", type=int, default=Size.pods)
    parser.add_argument("--maps", type=int, default=Size.maps)
    parser.add_argument("--image", default=PAUSE_IMAGE, help="(default: %(default)s)")
    given = parser.parse_args()
    size = Size(given.rounds, given.pods, given.maps, given.image)
    say = lambda text: print(f"… {text}", file=sys.stderr, flush=True)  # noqa: E731
    try:
        say("the other cluster")
        theirs = asyncio.run(figures_of(given.kubeconfig, size))
        say("this sampan")
        if given.ours:
            ours = asyncio.run(figures_of(given.ours, size))
        else:
            ours = _of_a_new_cluster(given.runtime, size)
    except (ApiError, kubeconfig.KubeconfigError, TimeoutError) as error:
        print(f"bench: {error or 'it took too long'}", file=sys.stderr)
        return 1
    print(table(ours, theirs))
    return 0


def _of_a_new_cluster(runtime: str, size: Size) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="sampan-bench-") as folder:
        cluster = SampanProcess(Path(folder), "--runtime", runtime)
        try:
            cluster.up(seconds=120.0)
            return asyncio.run(figures_of(str(cluster.kubeconfig), size))
        finally:
            cluster.reset()


if __name__ == "__main__":
    sys.exit(main())
