"""`make bench-api`: the API server over TLS, beside a bare HTTP server and the bare store.

Job: GET, create, update, LIST, watch fan-out, deletecollection, memory; the load is on the same
    machine. Beside the rates stands the server's own CPU time, which a busy machine changes less.
"""

import argparse
import asyncio
import multiprocessing
import shutil
import ssl
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import orjson
import uvloop

from sampan.api.objects import Obj
from sampan.client import kubeconfig
from sampan.core import tls
from sampan.core.clock import SystemClock
from sampan.core.http import Request, Response
from sampan.core.http_client import HttpClient
from sampan.core.http_server import Server
from sampan.core.tasks import all_of
from sampan.store.open import open_store
from sampan.testing.sampan_process import SampanProcess
from tests.bench.load import Target, rate, request_bytes
from tests.bench.record import append, print_row
from tests.bench.usage import cpu_seconds, pss_mib

PODS = "/api/v1/namespaces/default/pods"
CONNECTIONS = 64
LISTS = 9
WATCHERS = (200, 1000)
WRITERS = 8  # of one object


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


def main() -> int:
    parser = argparse.ArgumentParser(description="figures of the API server")
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--no-csv", action="store_true", help="print only")
    given = parser.parse_args()
    workspace = Path(tempfile.mkdtemp(prefix="sampan-bench-"))
    cluster = SampanProcess(workspace, "--runtime", "none").up()
    try:
        row = uvloop.run(_figures(cluster, workspace, given.pods))
    finally:
        cluster.reset()
        shutil.rmtree(workspace)
    print_row(row)
    if not given.no_csv:
        append(row)
    return 0


async def _figures(cluster: SampanProcess, workspace: Path, pods: int) -> dict[str, float]:
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    context = tls.client_context(
        ca_data=connection.ca, cert_data=connection.certificate, key_data=connection.key
    )
    target = Target.of(connection.server, context)
    row: dict[str, float] = {}
    row["bare HTTP over TLS, GET/s"] = await _bare_http(cluster)
    row["bare store, durable creates/s"] = await _bare_store(workspace)
    before = pss_mib([cluster.pid])
    creates = [
        request_bytes(target, "POST", PODS, orjson.dumps(pod(f"p{number}")))
        for number in range(pods)
    ]
    cpu = _Cpu(cluster.pid)
    row["creates/s"] = await rate(target, creates, CONNECTIONS)
    row["CPU per create, µs"] = cpu.microseconds_each(pods)
    row["memory per pod, KiB"] = (pss_mib([cluster.pid]) - before) * 1024 / pods
    gets = [request_bytes(target, "GET", f"{PODS}/p{number % pods}") for number in range(20_000)]
    cpu = _Cpu(cluster.pid)
    row["GET/s"] = await rate(target, gets, CONNECTIONS)
    row["CPU per GET, µs"] = cpu.microseconds_each(len(gets))
    http = HttpClient(ssl_context=context)
    cpu = _Cpu(cluster.pid)
    row[f"LIST of {pods}, ms"] = await _list(http, connection.server)
    row[f"CPU per LIST of {pods}, ms"] = cpu.microseconds_each(LISTS) / 1000
    row["updates/s of one object, 8 writers"] = await _contended(http, connection.server)
    for watchers in WATCHERS:
        row[f"watch events/s to {watchers}"] = await _watch(
            http, connection.server, target, watchers
        )
    row["deletecollection/s"] = await _delete_all(http, connection.server)
    await http.close()
    row["GET ÷ bare HTTP"] = row["GET/s"] / row["bare HTTP over TLS, GET/s"]
    row["creates ÷ bare store"] = row["creates/s"] / row["bare store, durable creates/s"]
    return row


async def _bare_http(cluster: SampanProcess) -> float:
    """The same HTTP server with a handler that does nothing, in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve_bare, args=(there, str(cluster.data_dir / "pki"))
    )
    process.start()
    try:
        port = await asyncio.to_thread(here.recv)
        context = tls.client_context(ca_path=cluster.data_dir / "pki" / "ca.crt")
        target = Target("127.0.0.1", port, context)
        return await rate(target, [request_bytes(target, "GET", "/")] * 20_000, CONNECTIONS)
    finally:
        process.terminate()
        process.join()


def _serve_bare(parent: Connection, pki: str) -> None:
    async def answer(_request: Request) -> Response:
        return Response(200, (("content-type", "application/json"),), b"{}")

    async def serve() -> None:
        context: ssl.SSLContext = tls.server_context(f"{pki}/apiserver.crt", f"{pki}/apiserver.key")
        parent.send(await Server(answer, ssl_context=context).start("127.0.0.1", 0))
        await asyncio.Event().wait()

    uvloop.run(serve())


async def _bare_store(workspace: Path) -> float:
    store = await open_store(f"sqlite:///{workspace / 'bare.db'}", SystemClock())
    value = orjson.dumps(pod("x"))
    count = 5000

    async def writer(number: int) -> None:
        for one in range(count // CONNECTIONS):
            await store.create(f"/registry/pods/{number}/{one}", value)

    began = time.monotonic()
    await all_of(writer(number) for number in range(CONNECTIONS))
    took = time.monotonic() - began
    await store.close()
    return count / took


class _Cpu:
    """What the server has used since this was made."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = cpu_seconds([pid])

    def microseconds_each(self, count: int) -> float:
        return 1e6 * (cpu_seconds([self._pid]) - self._before) / count


async def _contended(http: HttpClient, server: str) -> float:
    """Everybody raises one counter: read, write on condition, again on conflict."""
    path = f"{server}/api/v1/namespaces/default/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counter"}}
    headers = (("content-type", "application/json"),)
    made = await http.request("POST", path, headers=headers, body=orjson.dumps(body))
    assert made.status == 201, made.body
    each = 50

    async def writer() -> None:
        done = 0
        while done < each:
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
    assert found["data"] == {"count": str(each * WRITERS)}, found  # none was lost
    return each * WRITERS / took


async def _list(http: HttpClient, server: str) -> float:
    took = []
    for _ in range(LISTS):
        began = time.monotonic()
        await http.request("GET", f"{server}{PODS}")
        took.append(time.monotonic() - began)
    return 1000 * statistics.median(took)


async def _watch(http: HttpClient, server: str, target: Target, watchers: int) -> float:
    """Events per second that arrive at all watchers together, while objects are made."""
    count = 60_000 // watchers
    listed = orjson.loads((await http.request("GET", f"{server}/api/v1/configmaps?limit=1")).body)
    revision = listed["metadata"]["resourceVersion"]
    url = f"{server}/api/v1/configmaps?watch=1&resourceVersion={revision}"
    watching = [await http.stream("GET", url) for _ in range(watchers)]

    async def seen(stream: object) -> None:
        events = 0
        async for chunk in stream:  # type: ignore[attr-defined]
            events += chunk.count(b"\n")
            if events >= count:
                return

    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "x" * 200}}
    path = "/api/v1/namespaces/default/configmaps"
    requests = [
        request_bytes(
            target, "POST", path, orjson.dumps({**body, "metadata": {"name": f"w{watchers}-{n}"}})
        )
        for n in range(count)
    ]
    began = time.monotonic()
    await all_of([rate(target, requests, 16), *(seen(stream) for stream in watching)])
    took = time.monotonic() - began
    for stream in watching:
        await stream.aclose()
    return count * watchers / took


async def _delete_all(http: HttpClient, server: str) -> float:
    items = len(orjson.loads((await http.request("GET", f"{server}{PODS}")).body)["items"])
    began = time.monotonic()
    answer = await http.request("DELETE", f"{server}{PODS}", timeout_seconds=120)
    assert answer.status == 200, answer.body
    return items / (time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
