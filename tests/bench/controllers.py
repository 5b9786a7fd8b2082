"""`make bench-controllers`: whole clusters of simulated nodes, as a user drives them over HTTPS.

Job: apply, wait, count; print a table, append a row to docs/bench.csv.
    Figures are for people: nothing is asserted.
"""

import argparse
import asyncio
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import closing
from pathlib import Path

from sampan.api.errors import NotFound
from sampan.api.objects import Obj
from sampan.api.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    Resource,
)
from sampan.client import kubeconfig, rest
from sampan.client.rest import RestClient
from sampan.core.clock import SystemClock
from sampan.core.tasks import all_of
from tests.bench.record import append
from tests.bench.usage import cpu_seconds, our_processes
from tests.support.parts.sampan_process import SampanProcess

NODES = 20
AT_ONCE = 32
LONGEST_SECONDS = 180.0


def main() -> int:
    parser = argparse.ArgumentParser(description="figures of the controllers")
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--only", default="", help="deployment, jobs, namespace or garbage")
    parser.add_argument("--no-csv", action="store_true", help="print only")
    given = parser.parse_args()
    workspace = Path(tempfile.mkdtemp(prefix="sampan-bench-"))
    cluster = SampanProcess(workspace, "--runtime", "simulated", "--nodes", str(NODES))
    try:
        cluster.up()
        row = asyncio.run(_figures(cluster, given))
        cluster.stop()
    finally:
        cluster.reset()
        shutil.rmtree(workspace)
    for name, value in row.items():
        print(f"{name:<48} {value:10.2f}")
    if not given.no_csv:
        append(row)
    return 0


async def _figures(cluster: SampanProcess, given: argparse.Namespace) -> dict[str, float]:
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    client = rest.connect(connection, clock=SystemClock())
    row: dict[str, float] = {}
    try:
        bench = _Bench(client, cluster.pid, cluster.data_dir)
        if given.only in ("", "deployment"):
            row |= await bench.deployment(given.replicas)
        if given.only in ("", "jobs"):
            row |= await bench.jobs(given.jobs)
        if given.only in ("", "namespace"):
            row |= await bench.namespace(given.objects)
        if given.only in ("", "garbage"):
            row |= await bench.garbage(given.objects)
    finally:
        await client.close()
    return row


class _Bench:
    def __init__(self, client: RestClient, pid: int, data_dir: Path) -> None:
        self._client, self._pid, self._data_dir = client, pid, data_dir

    async def deployment(self, replicas: int) -> dict[str, float]:
        name = f"{replicas} replicas"
        _say(f"a Deployment of {name}")
        await self._client.create(DEPLOYMENTS, _deployment(replicas))
        row = await self._measured(f"{name} Ready", replicas, lambda: self._available(replicas))
        _say("a rolling update of it")
        patch = {"spec": {"template": {"metadata": {"annotations": {"turn": "2"}}}}}
        await self._client.patch(DEPLOYMENTS, "default", "web", patch, patch_type="merge")
        row |= await self._measured(f"{name} updated", replicas, lambda: self._available(replicas))
        _say("and its end")
        await self._client.delete(DEPLOYMENTS, "default", "web", propagation="Foreground")
        row |= await self._measured(f"{name} deleted", replicas, lambda: self._give_up())
        return row

    async def jobs(self, count: int) -> dict[str, float]:
        _say(f"{count} Jobs of 4 completions")

        async def complete() -> None:
            await at_once(self._client.create(JOBS, _job(number)) for number in range(count))
            await self._until(JOBS, lambda found: sum(map(_is_complete, found.values())) == count)

        return await self._measured(f"{count} jobs of 4 complete", 4 * count, complete)

    async def namespace(self, count: int) -> dict[str, float]:
        _say(f"a namespace of {count} objects")
        await self._make_objects("crowded", count, {})
        began = time.perf_counter()
        await self._client.delete(NAMESPACES, "", "crowded")
        await self._until(NAMESPACES, lambda found: "crowded" not in found, namespace="")
        return {f"namespace of {count} objects gone, s": time.perf_counter() - began}

    async def garbage(self, count: int) -> dict[str, float]:
        _say(f"an owner of {count} dependents")
        owner = await self._client.create(CONFIG_MAPS, _config_map("owner", "default", {}))
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
        }
        await self._make_objects("owned", count, {"ownerReferences": [reference]}, "default")
        began = time.perf_counter()
        await self._client.delete(CONFIG_MAPS, "default", "owner", propagation="Background")
        await self._until(
            CONFIG_MAPS, lambda found: not any(name.startswith("o") for name in found)
        )
        return {f"{count} dependents gone, s": time.perf_counter() - began}

    async def _make_objects(
        self, prefix: str, count: int, meta: Obj, namespace: str = "crowded"
    ) -> None:
        if namespace == "crowded":
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await self._client.create(NAMESPACES, made)
        await at_once(
            self._client.create(CONFIG_MAPS, _config_map(f"{prefix}-{number}", namespace, meta))
            for number in range(count)
        )

    async def _measured(
        self, name: str, pods: int, until: Callable[[], Awaitable[None]]
    ) -> dict[str, float]:
        began, before = time.perf_counter(), await self._revision()
        busy = cpu_seconds(our_processes(self._pid))
        await until()
        seconds = time.perf_counter() - began
        spent = cpu_seconds(our_processes(self._pid)) - busy
        kinds = written(self._data_dir, before)
        return {
            f"{name}, s": seconds,
            f"{name}, CPU s": spent,
            f"{name}, writes per pod": kinds.total() / pods,
            f"{name}, of these events": kinds["events"] / pods,
            f"{name}, of these pods": kinds["pods"] / pods,
        }

    async def _available(self, replicas: int) -> None:
        def done(found: dict[str, Obj]) -> bool:
            status = found["web"].get("status") or {}
            generation = found["web"]["metadata"]["generation"]
            return status.get("observedGeneration") == generation and all(
                status.get(field) == replicas
                for field in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            )

        await self._until(DEPLOYMENTS, done)

    async def _give_up(self) -> None:
        await self._until(DEPLOYMENTS, lambda found: "web" not in found)

    async def _revision(self) -> int:
        return (await self._client.list(NAMESPACES)).revision

    async def _until(
        self,
        resource: Resource,
        done: Callable[[dict[str, Obj]], bool],
        namespace: str = "default",
    ) -> None:
        """By watching: what a user who waits costs is next to nothing."""
        listed = await self._client.list(resource, namespace)
        found = {one["metadata"]["name"]: one for one in listed.items}
        async with asyncio.timeout(LONGEST_SECONDS):
            if done(found):
                return
            changes = self._client.watch(resource, namespace, revision=listed.revision)
            async for event in changes:
                name = event.object["metadata"].get("name", "")
                if event.type == "DELETED":
                    found.pop(name, None)
                elif event.type != "BOOKMARK":
                    found[name] = event.object
                if done(found):
                    return
        raise NotFound("the watch ended")


def written(data_dir: Path, since: int) -> Counter[str]:
    """Kind → writes after this revision, from the store's own log."""
    [path] = data_dir.rglob("*.db")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as log:
        rows = log.execute("SELECT key FROM log WHERE revision > ?", (since,))
        return Counter(str(key).split("/")[2] for (key,) in rows)


def _is_complete(job: Obj) -> bool:
    return bool((job.get("status") or {}).get("succeeded") == 4)


def _template(labels: Obj, **spec: object) -> Obj:
    container = {"name": "c", "image": "anything:1", "resources": {"requests": {"cpu": "10m"}}}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


def _deployment(replicas: int) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": _template({"app": "web"}),
        },
    }


def _job(number: int) -> Obj:
    template = _template({}, restartPolicy="Never")
    template["metadata"]["annotations"] = {"simulated.sampan.dev/exit-after-seconds": "0"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"job-{number}", "namespace": "default"},
        "spec": {"completions": 4, "parallelism": 4, "template": template},
    }


def _config_map(name: str, namespace: str, meta: Obj) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **meta},
        "data": {"key": "value"},
    }


async def at_once(calls: Iterable[Coroutine[None, None, object]]) -> None:
    waiting = iter(calls)

    async def worker() -> None:
        for call in waiting:
            await call

    await all_of([worker() for _ in range(AT_ONCE)])


def _say(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
