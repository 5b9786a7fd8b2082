"""Records lives on a cluster without nodes of its own.

`python -m tests.support.workload_lives.record --kubeconfig FILE --out FILE.json.gz [--times 2]
[--only A,B]`

Job: live each scenario so many times on the cluster, some at once; write what was seen, and what
    of it was not the same each time.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from sampan.api.objects import Obj, name_of
from sampan.client.kubeconfig import load
from sampan.core.clock import SystemClock
from sampan.core.http.errors import HttpError
from sampan.core.tasks import all_of
from tests.support.workload_lives.live import live
from tests.support.workload_lives.recordings import combined, read, write
from tests.support.workload_lives.scenarios.all_lives import LIVES
from tests.support.workload_lives.stand_in_nodes import StandInNodes
from tests.support.workload_lives.steps import Life
from tests.support.workload_lives.transport import OverHttps

AT_ONCE = 6


async def _record(
    transport: OverHttps, nodes: StandInNodes, names: Sequence[str]
) -> dict[str, Obj]:
    seats = asyncio.Semaphore(AT_ONCE)
    found: dict[str, Obj] = {}

    async def one(name: str, life: Life) -> None:
        async with seats:
            try:
                found[name] = await live(transport, nodes, name, life)
            except (AssertionError, LookupError, HttpError) as error:
                found[name] = {"error": repr(error)}
            print(f"{len(found)} {name} {found[name].get('error', '')}", file=sys.stderr)

    await all_of(one(name, LIVES[name]) for name in names if not LIVES[name].alone)
    for name in names:
        if LIVES[name].alone:
            await one(name, LIVES[name])
    return found


async def _until_gone(transport: OverHttps, names: Sequence[str]) -> None:
    while True:
        _, listed = await transport.call("GET", "/api/v1/namespaces")
        left = {name_of(item) for item in listed["items"]}
        if not any(f"life-{name}" in left for name in names):
            return
        await asyncio.sleep(1)


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name] or list(LIVES)
    transport = OverHttps(load(options.kubeconfig, {}, "/").connection())
    nodes = StandInNodes(transport, SystemClock())
    await nodes.join()
    rounds = []
    for _ in range(options.times):
        await _until_gone(transport, names)
        rounds.append(await _record(transport, nodes, names))
    known = read(options.out) if options.out.exists() else {}
    new = {name: combined(round_[name] for round_ in rounds) for name in names}
    write(options.out, {**known, **new})
    await _until_gone(transport, names)
    await nodes.stop()
    await transport.close()


asyncio.run(_main())
