"""The node's HTTP server over TLS, with a simulated runtime and a stand-in streaming server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from sampan.api.objects import Obj
from sampan.core import tls
from sampan.core.clock import SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Connection, Request, Response, Upgrade
from sampan.core.http.server import Server
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.local_streams import StreamOptions
from sampan.kubelet.contracts.runtime import ContainerSpec, SandboxSpec
from sampan.kubelet.server.http_server import KubeletServer
from sampan.kubelet.server.lookup import RuntimeLookup
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support.parts.certificates import Authority

POD: Obj = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u1"},
    "spec": {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Never"},
}
UPGRADE = [
    ("connection", "Upgrade"),
    ("upgrade", "SPDY/3.1"),
    ("x-stream-protocol-version", "v4.channel.k8s.io"),
    ("x-stream-protocol-version", "v3.channel.k8s.io"),
]


class StreamingRuntime(SimulatedRuntime):
    """Simulated, but with an address for its streams, as containerd has one."""

    streaming = ""
    local_streams = None

    async def exec_url(self, container_id: str, streams: StreamOptions) -> str:
        asked = f"{streams.stdin}/{streams.stdout}/{streams.stderr}/{streams.tty}"
        return f"{self.streaming}/exec/{'+'.join(streams.command)}/{asked}"

    async def attach_url(self, container_id: str, streams: StreamOptions) -> str:
        return f"{self.streaming}/attach"

    async def port_forward_url(self, sandbox_id: str) -> str:
        return f"{self.streaming}/portforward/{sandbox_id}"


async def streaming_server(request: Request) -> Upgrade | Response:
    """Shows what it was asked for, then echoes; as containerd, it does not split at commas."""
    if "nobody" in request.path:
        return Response(404, (), b"no such session")
    versions = request.headers["x-stream-protocol-version"].split(", ")

    async def echo(connection: Connection) -> None:
        await connection.write(request.path.encode() + b"\n")
        while data := await connection.read():
            await connection.write(data)

    return Upgrade(
        (*UPGRADE[:2], ("x-stream-protocol-version", versions[0])),
        echo,
    )


class Node:
    def __init__(self, url: str, runtime: StreamingRuntime, authority: Authority) -> None:
        self.url, self.runtime, self._authority = url, runtime, authority
        self.container_id = self.sandbox_id = ""
        self.clients: list[HttpClient] = []

    def client(self, group: str | None = "system:masters") -> HttpClient:
        pair = None if group is None else self._authority.issue("someone", group)
        context = tls.client_context(
            ca_path=self._authority.ca_path,
            cert_path=pair and pair.cert_path,
            key_path=pair and pair.key_path,
        )
        self.clients.append(HttpClient(ssl_context=context))
        return self.clients[-1]


@asynccontextmanager
async def node(directory: Path, unhealthy: str = "") -> AsyncIterator[Node]:
    authority = Authority(directory)
    pair = authority.issue("system:node:n1", "system:nodes")
    runtime = StreamingRuntime(clock=SystemClock())
    far = Server(streaming_server)
    runtime.streaming = f"http://127.0.0.1:{await far.start('127.0.0.1', 0)}"
    metrics = Metrics()
    metrics.counter("kubelet_things_total", "Things.").add()
    lookup = RuntimeLookup(lambda: [POD], runtime)
    server = KubeletServer(
        lookup, runtime, clock=SystemClock(), metrics=metrics, healthy=lambda: unhealthy,
        checkpoints=str(directory / "checkpoints"),
    )  # fmt: skip
    context = tls.server_context(pair.cert_path, pair.key_path, authority.ca_path)
    port = await server.start("127.0.0.1", 0, context)
    made = Node(f"https://127.0.0.1:{port}", runtime, authority)
    sandbox = SandboxSpec("web", "default", "u1", 0, "web", str(directory))
    made.sandbox_id = await runtime.run_sandbox(sandbox)
    spec = ContainerSpec("main", 0, "i", "i", log_path="main.log")
    made.container_id = await runtime.create_container(made.sandbox_id, spec, sandbox)
    await runtime.start_container(made.container_id)
    (directory / "main.log").write_bytes(
        b"2026-11-15T06:32:19Z stdout F one\n2026-11-15T06:32:20Z stdout F two\n"
    )
    try:
        yield made
    finally:
        for client in made.clients:
            await client.close()
        await server.stop(1.0)
        await far.stop(1.0)


def test_only_the_clusters_masters_are_let_in(tmp_path):
    """[N19]"""

    async def story():
        async with node(tmp_path) as made:
            anonymous = await made.client(None).request("GET", f"{made.url}/healthz")
            assert (anonymous.status, anonymous.body) == (401, b"Unauthorized")
            other = await made.client("system:nodes").request("GET", f"{made.url}/pods")
            assert other.status == 403
            assert other.body.startswith(b"Forbidden (user=someone, verb=get, resource=nodes")
            master = await made.client().request("GET", f"{made.url}/healthz")
            assert (master.status, master.body) == (200, b"ok")

    asyncio.run(story())


def test_health_fails_when_the_agent_is_stuck(tmp_path):
    """[N4] [N19]"""

    async def story():
        async with node(tmp_path, unhealthy="pleg was last seen active 200s ago") as made:
            client = made.client()
            sick = await client.request("GET", f"{made.url}/healthz")
            assert sick.status == 500
            assert b"[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\n" in sick.body
            why = await client.request("GET", f"{made.url}/healthz/syncloop")
            assert why.status == 500
            assert b"pleg was last seen active 200s ago" in why.body
            slis = (await client.request("GET", f"{made.url}/metrics/slis")).body.decode()
            assert 'kubernetes_healthcheck{name="syncloop",type="healthz"} 0' in slis
            assert (await client.request("GET", f"{made.url}/healthz/ping")).status == 200

    asyncio.run(story())


def test_a_certificate_of_another_authority_does_not_even_connect(tmp_path):
    async def story():
        (tmp_path / "other").mkdir()
        async with node(tmp_path) as made:
            stranger = Authority(tmp_path / "other", "other").issue("x", "system:masters")
            context = tls.client_context(
                verify=False, cert_path=stranger.cert_path, key_path=stranger.key_path
            )
            client = HttpClient(ssl_context=context)
            with pytest.raises(HttpError):
                await client.request("GET", f"{made.url}/healthz")
            await client.close()

    asyncio.run(story())


def test_what_the_node_knows(tmp_path):
    async def story():
        async with node(tmp_path) as made:
            client = made.client()

            async def get(path: str) -> bytes:
                answer = await client.request("GET", made.url + path)
                assert answer.status == 200
                return answer.body

            assert orjson.loads(await get("/pods"))["items"] == [POD]
            (running,) = orjson.loads(await get("/runningpods/"))["items"]
            assert running["metadata"]["name"] == "web"
            assert b"kubelet_things_total 1" in await get("/metrics")
            assert orjson.loads(await get("/configz")) == {"kubeletconfig": {}}
            assert (await client.request("GET", f"{made.url}/nothing")).status == 404

    asyncio.run(story())


def test_logs_of_a_container(tmp_path):
    async def story():
        async with node(tmp_path) as made:
            client = made.client()
            url = f"{made.url}/containerLogs/default/web/main"
            assert (await client.request("GET", url)).body == b"one\ntwo\n"
            assert (await client.request("GET", f"{url}?tailLines=1")).body == b"two\n"
            assert (await client.request("GET", f"{url}?tailLines=-1")).status == 422
            previous = await client.request("GET", f"{url}?previous=true")
            assert previous.status == 400
            assert b'previous terminated container "main"' in previous.body
            gone = await client.request("GET", url.replace("web", "gone"))
            assert (gone.status, gone.body) == (404, b'pod "gone" does not exist')

    asyncio.run(story())


def test_following_ends_with_the_container(tmp_path):
    async def story():
        async with node(tmp_path) as made:
            client = made.client()
            url = f"{made.url}/containerLogs/default/web/main?follow=true"
            stream = await client.stream("GET", url)
            seen = b""
            async for chunk in stream:
                seen += chunk
                if seen == b"one\ntwo\n":
                    made.runtime.crash(made.container_id)
                    with open(tmp_path / "main.log", "ab") as log:
                        log.write(b"2026-11-15T06:32:21Z stdout F three\n")
            assert seen == b"one\ntwo\nthree\n"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        (
            "/exec/default/web/main?command=ls&command=-l&output=1&error=1&tty=1",
            b"/exec/ls+-l/False/True/False/True",
        ),
        ("/exec/default/web/u1/main?command=ls&input=1", b"/exec/ls/True/False/False/False"),
        ("/attach/default/web/main?output=1", b"/attach"),
        ("/portForward/default/web", b"/portforward/"),
    ],
)
def test_streams_are_passed_to_the_runtime(tmp_path, path, asked):
    async def story():
        async with node(tmp_path) as made:
            answer = await made.client().upgrade("POST", made.url + path, headers=UPGRADE)
            assert answer.status == 101
            assert answer.headers["x-stream-protocol-version"] == "v4.channel.k8s.io"
            connection = answer.connection
            assert connection is not None
            assert (await connection.read()).startswith(asked)
            await connection.write(b"ping")
            assert await connection.read() == b"ping"
            connection.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/exec/default/gone/main?output=1", 404, b"pod does not exist"),
        ("/exec/default/web/other?output=1", 500, b'container not found ("other")'),
        ("/exec/default/web/main", 400, b"you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/web/main?output=1&command=nobody", 404, b"no such session"),
        ("/attach/default/web/uid/extra/main?output=1", 404, b"404 page not found\n"),
    ],
)
def test_streams_that_cannot_be_had(tmp_path, path, status, message):
    async def story():
        async with node(tmp_path) as made:
            answer = await made.client().upgrade("POST", made.url + path, headers=UPGRADE)
            assert (answer.status, answer.body) == (status, message)

    asyncio.run(story())


def test_a_stream_needs_an_upgrade_and_a_running_container(tmp_path):
    async def story():
        async with node(tmp_path) as made:
            client, url = made.client(), f"{made.url}/exec/default/web/main?output=1"
            plain = await client.request("POST", url)
            assert (plain.status, plain.body) == (400, b"Upgrade request required\n")
            made.runtime.crash(made.container_id)
            ended = await client.upgrade("POST", url, headers=UPGRADE)
            assert (ended.status, ended.body) == (500, b'container not found ("main")')

    asyncio.run(story())


def test_a_checkpoint_is_refused_where_the_runtime_cannot(tmp_path):
    """[N19]"""

    async def story():
        async with node(tmp_path) as made:
            client, url = made.client(), f"{made.url}/checkpoint/default/web"
            failed = await client.request("POST", f"{url}/main")
            assert failed.status == 500
            assert failed.body.startswith(b"checkpointing of default/web/main failed (")
            assert (await client.request("POST", f"{url}/nope")).status == 404
            assert (await client.request("POST", f"{url}/main?timeout=soon")).status == 400
            assert (await client.request("GET", f"{url}/main")).status == 405

    asyncio.run(story())
