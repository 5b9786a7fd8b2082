"""Records lives on a cluster without nodes of its own.

`python -m tests.support.workload_lives.record --kubeconfig FILE --out FILE.json.gz [--times 3]
[--only A,B] [--prefix job-] [--address ADDRESS] [--more]`

Job: live each scenario so many times on the cluster, some at once; write what was seen, and what
    of it was not the same each time.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from sampan.api.objects import Obj, name_of
from sampan.client.kubeconfig import load
from sampan.core.clock import SystemClock
from sampan.core.http.errors import HttpError
from sampan.core.tasks import all_of
from tests.support.workload_lives.live import Place, live
from tests.support.workload_lives.metrics_server import MetricsServer
from tests.support.workload_lives.played_metrics import PlayedMetrics
from tests.support.workload_lives.recordings import combined, read, write
from tests.support.workload_lives.scenarios.all_lives import LIVES
from tests.support.workload_lives.stand_in_nodes import StandInNodes
from tests.support.workload_lives.steps import Life, path
from tests.support.workload_lives.transport import MERGE, OverHttps

PATIENCE_SECONDS = 20


async def _record(place: Place, names: Sequence[str], at_once: int) -> dict[str, Obj]:
    seats = asyncio.Semaphore(at_once)
    found: dict[str, Obj] = {}

    async def one(name: str, life: Life) -> None:
        async with seats:
            try:
                found[name] = await live(place, name, life)
            except (AssertionError, LookupError, RuntimeError, HttpError) as error:
                found[name] = {"error": repr(error)}
            print(f"{len(found)} {name} {found[name].get('error', '')}", file=sys.stderr)

    await all_of(one(name, LIVES[name]) for name in names if not LIVES[name].alone)
    for name in names:
        if LIVES[name].alone:
            await one(name, LIVES[name])
    return found


async def _until_gone(transport: OverHttps, names: Sequence[str]) -> None:
    """What is held up for long is let go: a Job of a namespace on its way out may wait for a pod
    that nobody can make any more."""
    waited = 0
    while True:
        _, listed = await transport.call("GET", "/api/v1/namespaces")
        found = {name_of(item) for item in listed["items"]}
        left = [name for name in found if name.startswith(tuple(f"life-{one}" for one in names))]
        if not left:
            return
        if waited > PATIENCE_SECONDS:
            for namespace in left:  # of a recording that was ended, nobody has deleted it yet
                await transport.call("DELETE", f"/api/v1/namespaces/{namespace}")
                await _let_go(transport, namespace)
        await asyncio.sleep(1)
        waited += 1


async def _let_go(transport: OverHttps, namespace: str) -> None:
    kinds = (
        "pods", "jobs", "persistentvolumeclaims", "configmaps", "replicasets", "resourceclaims",
        "namespaces",
    )  # fmt: skip
    for kind in kinds:
        _, listed = await transport.call("GET", path(kind, namespace))
        for item in listed.get("items") or ():
            if kind == "namespaces" and name_of(item) != namespace:
                continue
            at = path(kind, namespace, name_of(item))
            await transport.call("PATCH", at, {"metadata": {"finalizers": None}}, MERGE)


async def _rounds(place: Place, transport: OverHttps, options: argparse.Namespace) -> None:
    wanted = [name for name in options.only.split(",") if name]
    names = wanted or [name for name in LIVES if name.startswith(options.prefix)]
    rounds = []
    for _ in range(options.times):
        await _until_gone(transport, names)
        rounds.append(await _record(place, names, options.at_once))
    known = read(options.out) if options.out.exists() else {}
    if options.more:
        rounds.insert(0, {name: known.get(name, rounds[0][name]) for name in names})
    lived = [name for name in names if not any("error" in round_[name] for round_ in rounds)]
    new = {name: combined(round_[name] for round_ in rounds) for name in lived}
    write(options.out, {**known, **new})
    for name in names:
        unstable = new.get(name, {}).get("unstable") or ()
        print(name, "ERROR" if name not in new else list(unstable) or "", file=sys.stderr)
    await _until_gone(transport, names)


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--more", action="store_true", help="than what was recorded before")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--address", default="", help="of ours, that the cluster can reach")
    options = parser.parse_args()
    transport = OverHttps(load(options.kubeconfig, {}, "/").connection())
    clock = SystemClock()
    metrics = PlayedMetrics(transport, clock)
    place = Place(transport, StandInNodes(transport, clock), metrics, clock)
    await place.nodes.join()
    async with contextlib.AsyncExitStack() as stack:
        if options.address:
            await stack.enter_async_context(MetricsServer(metrics, transport, options.address))
        await _rounds(place, transport, options)
    await place.nodes.stop()
    await transport.close()


if __name__ == "__main__":
    asyncio.run(_main())
