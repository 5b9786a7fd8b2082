"""`make bench-api`: the API server over TLS, beside a bare HTTP server and the bare store.

Job: GET, create, update, LIST, watch fan-out, deletecollection, memory; the load is on the same
    machine. Beside the rates stands the server's own CPU time, which a busy machine changes less,
    and what share each is of a floor that was measured in the same run (tests/bench/floors.py).
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import orjson
import uvloop

from sampan.api.objects import Obj
from sampan.client import kubeconfig
from sampan.core import tls
from sampan.core.http.client import HttpClient
from sampan.core.tasks import all_of
from tests.bench import floors
from tests.bench.load import Target, lines_per_second, rate, request_bytes, seconds_each
from tests.bench.record import append, print_row
from tests.bench.usage import cpu_seconds, pss_mib
from tests.support.parts.sampan_process import SampanProcess

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
CONNECTIONS = 64
GETS = 20_000
LISTS = 9
WATCHERS = (200, 1000)
WATCHED_EVENTS = 60_000  # to all watchers together
WRITERS = 8  # of one object
EACH = 50  # updates of it by each

Row = dict[str, float]


def pod(name: str) -> Obj:
    """About the size of a small pod as users write it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench", "tier": "web"}},
        "spec": {
            "schedulerName": "nobody",
            "containers": [
                {
                    "name": "web",
                    "image": "registry.example/team/web:1.2.3",
                    "env": [{"name": "MODE", "value": "production"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    "ports": [{"containerPort": 8080}],
                }
            ],
        },
    }


@dataclass(frozen=True, slots=True)
class Bench:
    pid: int
    server: str
    target: Target
    bare: Target
    http: HttpClient
    row: Row


def main() -> int:
    parser = argparse.ArgumentParser(description="figures of the API server")
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--many-pods", type=int, default=30_000)
    parser.add_argument("--no-csv", action="store_true", help="print only")
    given = parser.parse_args()
    workspace = Path(tempfile.mkdtemp(prefix="sampan-bench-"))
    cluster = SampanProcess(workspace, "--runtime", "none").up()
    try:
        with floors.bare_http(cluster.data_dir / "pki") as bare:
            row = uvloop.run(_figures(cluster, bare, workspace, given.pods, given.many_pods))
    finally:
        cluster.reset()
        shutil.rmtree(workspace)
    print_row(row)
    if not given.no_csv:
        append(row)
    return 0


async def _figures(
    cluster: SampanProcess, bare: Target, workspace: Path, pods: int, many: int
) -> Row:
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    context = tls.client_context(ca_data=connection.ca, pair_data=connection.pair)
    http = HttpClient(ssl_context=context)
    target = Target.of(connection.server, context)
    bench = Bench(cluster.pid, connection.server, target, bare, http, {})
    await _bare_http(bench)
    await _bare_store(bench, workspace)
    await _creates(bench, pods)
    await _gets(bench, pods)
    size = await _lists(bench, pods)
    await _updates(bench)
    for watchers in WATCHERS:
        await _watches(bench, watchers)
    await _memory(bench, pods, many, size / pods)
    await _lists(bench, many)
    await _delete_all(bench, many)
    await http.close()
    return bench.row


def few_figures(workspace: Path, pods: int = 3000) -> Row:
    """Of `make bench`: a list from the cache, and a deletecollection."""
    workspace.mkdir()
    cluster = SampanProcess(workspace, "--runtime", "none").up()
    try:
        with floors.bare_http(cluster.data_dir / "pki") as bare:
            row = uvloop.run(_few(cluster, bare, workspace, pods))
    finally:
        cluster.reset()
    names = ("LIST of", "CPU per LIST of", "deletecollection", "CPU per pod of a deletecollection")
    return {name: value for name, value in row.items() if name.startswith(names)}


async def _few(cluster: SampanProcess, bare: Target, workspace: Path, pods: int) -> Row:
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    context = tls.client_context(ca_data=connection.ca, pair_data=connection.pair)
    http = HttpClient(ssl_context=context)
    target = Target.of(connection.server, context)
    bench = Bench(cluster.pid, connection.server, target, bare, http, {})
    await _bare_store(bench, workspace)
    await _made(bench, 0, pods)
    await _lists(bench, pods)
    await _delete_all(bench, pods)
    await http.close()
    return bench.row


async def _bare_http(bench: Bench) -> None:
    get = request_bytes(bench.bare, "GET", "/")
    bench.row["bare HTTP over TLS, GET/s"] = await rate(bench.bare, [get] * GETS, CONNECTIONS)


async def _bare_store(bench: Bench, workspace: Path) -> None:
    row, value = bench.row, orjson.dumps(pod("x"))
    async with floors.bare_store(workspace) as store:
        made = await floors.creates_per_second(store, value, 5000, CONNECTIONS)
        row["bare store, durable creates/s"] = made
        updated = await floors.contended_updates_per_second(store, value, EACH, WRITERS)
        row["bare store, updates/s of one object"] = updated
        row["bare store, deletes/s"] = await floors.deletes_per_second(store, 256)


async def _creates(bench: Bench, pods: int) -> None:
    row, cpu = bench.row, _Cpu(bench.pid)
    row["creates/s"] = await _made(bench, 0, pods)
    row["creates ÷ bare store"] = row["creates/s"] / row["bare store, durable creates/s"]
    row["CPU per create, µs"] = cpu.microseconds_each(pods)


async def _made(bench: Bench, first: int, upto: int) -> float:
    creates = [
        request_bytes(bench.target, "POST", PODS, orjson.dumps(pod(f"p{number}")))
        for number in range(first, upto)
    ]
    return await rate(bench.target, creates, CONNECTIONS)


async def _gets(bench: Bench, pods: int) -> None:
    row, cpu = bench.row, _Cpu(bench.pid)
    gets = [request_bytes(bench.target, "GET", f"{PODS}/p{one % pods}") for one in range(GETS)]
    row["GET/s"] = await rate(bench.target, gets, CONNECTIONS)
    row["GET ÷ bare HTTP"] = row["GET/s"] / row["bare HTTP over TLS, GET/s"]
    row["CPU per GET, µs"] = cpu.microseconds_each(len(gets))


async def _lists(bench: Bench, pods: int) -> int:
    """How many bytes the list has."""
    row, name, cpu = bench.row, f"LIST of {pods}", _Cpu(bench.pid)
    request = request_bytes(bench.target, "GET", PODS)
    took, size = await seconds_each(bench.target, request, LISTS)
    row[f"{name}, ms"] = 1000 * statistics.median(took)
    row[f"CPU per {name}, ms"] = cpu.microseconds_each(LISTS) / 1000
    same = request_bytes(bench.bare, "GET", f"/{size}")
    floor, _ = await seconds_each(bench.bare, same, LISTS)
    row[f"bare HTTP, as many bytes as a {name}, ms"] = 1000 * statistics.median(floor)
    row[f"{name} ÷ bare HTTP"] = statistics.median(took) / statistics.median(floor)
    return size


async def _memory(bench: Bench, pods: int, many: int, pod_bytes: float) -> None:
    """Of pods that come to the others: what the server itself takes is not counted again."""
    before = pss_mib([bench.pid])
    await _made(bench, pods, many)
    mib = pss_mib([bench.pid]) - before
    bench.row["memory per pod, KiB"] = mib * 1024 / (many - pods)
    bench.row["memory per 10000 pods, MiB"] = mib * 10_000 / (many - pods)
    bench.row["memory ÷ the pods' bytes"] = mib * 1024 * 1024 / (many - pods) / pod_bytes


class _Cpu:
    """What the server has used since this was made."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = cpu_seconds([pid])

    def microseconds_each(self, count: int) -> float:
        return 1e6 * (cpu_seconds([self._pid]) - self._before) / count


async def _updates(bench: Bench) -> None:
    row, name = bench.row, f"updates/s of one object, {WRITERS} writers"
    row[name] = await _contended(bench.http, bench.server + MAPS)
    row["updates ÷ bare store"] = row[name] / row["bare store, updates/s of one object"]


async def _contended(http: HttpClient, path: str) -> float:
    """Everybody raises one counter: read, write on condition, again on conflict."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counter"}}
    headers = (("content-type", "application/json"),)
    made = await http.request("POST", path, headers=headers, body=orjson.dumps(body))
    assert made.status == 201, made.body

    async def writer() -> None:
        done = 0
        while done < EACH:
            found = orjson.loads((await http.request("GET", f"{path}/counter")).body)
            count = int((found.get("data") or {}).get("count", "0"))
            found["data"] = {"count": str(count + 1)}
            answer = await http.request(
                "PUT", f"{path}/counter", headers=headers, body=orjson.dumps(found)
            )
            assert answer.status in (200, 409), answer.body
            done += answer.status == 200

    began = time.monotonic()
    await all_of(writer() for _ in range(WRITERS))
    took = time.monotonic() - began
    found = orjson.loads((await http.request("GET", f"{path}/counter")).body)
    assert found["data"] == {"count": str(EACH * WRITERS)}, found  # none was lost
    return EACH * WRITERS / took


async def _watches(bench: Bench, watchers: int) -> None:
    row, name, count = bench.row, f"watch events/s to {watchers}", WATCHED_EVENTS // watchers
    row[name], size = await _watched(bench, watchers, count)
    same = request_bytes(bench.bare, "GET", f"/watch/{count}/{size}")
    go = request_bytes(bench.bare, "GET", "/go")
    floor = await lines_per_second(
        bench.bare, same, watchers, count, lambda: rate(bench.bare, [go], 1)
    )
    row[f"bare HTTP, lines/s to {watchers}"] = floor
    row[f"{name} ÷ bare HTTP"] = row[name] / floor


async def _watched(bench: Bench, watchers: int, count: int) -> tuple[float, int]:
    """Events per second that arrive at all watchers together, while objects are made; and how many
    bytes one has."""
    http, server, target = bench.http, bench.server, bench.target
    listed = orjson.loads((await http.request("GET", f"{server}/api/v1/configmaps?limit=1")).body)
    revision = listed["metadata"]["resourceVersion"]
    watch = f"/api/v1/configmaps?watch=1&resourceVersion={revision}"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "x" * 200}}
    requests = [
        request_bytes(
            target, "POST", MAPS, orjson.dumps({**body, "metadata": {"name": f"w{watchers}-{n}"}})
        )
        for n in range(count)
    ]
    found = await lines_per_second(
        target, request_bytes(target, "GET", watch), watchers, count,
        lambda: rate(target, requests, floors.AT_ONCE),
    )  # fmt: skip
    one = await http.request("GET", f"{server}{MAPS}/w{watchers}-0")
    return found, len(one.body) + len('{"type":"ADDED","object":}\n')


async def _delete_all(bench: Bench, pods: int) -> None:
    cpu, began = _Cpu(bench.pid), time.monotonic()
    answer = await bench.http.request("DELETE", bench.server + PODS, timeout_seconds=300)
    assert answer.status == 200, answer.body
    row = bench.row
    row["deletecollection/s"] = pods / (time.monotonic() - began)
    row["CPU per pod of a deletecollection, µs"] = cpu.microseconds_each(pods)
    row["deletecollection ÷ bare store"] = row["deletecollection/s"] / row["bare store, deletes/s"]


if __name__ == "__main__":
    sys.exit(main())
