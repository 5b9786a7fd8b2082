"""Figures of one node: many pods at once, exec, logs, forwarded ports, each beside the runtime's.

Job: measure through the API and, in the same run, straight at the container runtime.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sampan.api.objects import Obj, name_of, uid_of
from sampan.api.resources import PODS
from sampan.client import kubeconfig
from sampan.client.contract import Client
from sampan.core import tls
from sampan.core.clock import Clock, SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.tasks import all_of
from sampan.kubelet.container_spec import generate
from sampan.kubelet.contracts.local_streams import StreamOptions
from sampan.kubelet.images.reference import PAUSE_IMAGE
from sampan.kubelet.runtime.cri_runtime import CriRuntime
from tests.bench.raw_cri import pause_pod
from tests.bench.stream_client import download, exec_url, port_forward_url, run_command
from tests.support.parts.sampan_process import SampanProcess

MANY = 40
ROUNDS, FEW = 20, 5
WEB_PORT = 8080
_SECONDS = 120.0
Row = dict[str, float]


async def many_at_once(
    client: Client, clock: Clock, count: int = MANY, look: Callable[[], None] = lambda: None
) -> tuple[float, float]:
    """(until all of them run, until all of them are gone); `look` is called while they run."""
    names = {f"many-{number}" for number in range(count)}
    listed = await client.list(PODS, "default")
    running: set[str] = set()
    gone: set[str] = set()
    began = clock.monotonic()
    await all_of(client.create(PODS, _pause(name), "default") for name in names)
    up = 0.0
    async with asyncio.timeout(_SECONDS):
        async for event in client.watch(PODS, "default", revision=listed.revision):
            name = name_of(event.object)
            if event.type == "DELETED":
                gone.add(name)
                if gone >= names:
                    break
            elif (event.object.get("status") or {}).get("phase") == "Running":
                running.add(name)
            if not up and running >= names:
                up = clock.monotonic() - began
                look()
                began = clock.monotonic()
                await all_of(client.delete(PODS, "default", name) for name in names)
    return up, clock.monotonic() - began


async def many_raw(
    socket_path: str, directory: Path, clock: Clock, count: int = MANY
) -> tuple[float, float]:
    """The same, all at once, by nothing but the calls that it takes."""
    runtime = CriRuntime(socket_path, clock)
    await runtime.connect(30.0)
    node = generate.NodeFacts(
        "raw", root_dir=str(directory / "kubelet"), log_root=str(directory / "logs")
    )
    image = await runtime.image(PAUSE_IMAGE)
    assert image is not None

    async def start(number: int) -> tuple[str, str]:
        pod = pause_pod(number)
        sandbox = generate.sandbox_spec(pod, attempt=0, node=node)
        container = generate.container_spec(
            pod,
            pod["spec"]["containers"][0],
            generate.ContainerContext(
                attempt=0, image_id=image.id, image=image, objects={}, pod_ips=(), node=node
            ),
        )
        sandbox_id = await runtime.run_sandbox(sandbox)
        container_id = await runtime.create_container(sandbox_id, container, sandbox)
        await runtime.start_container(container_id)
        return sandbox_id, container_id

    async def end(sandbox_id: str, container_id: str) -> None:
        await runtime.stop_container(container_id, 30.0)
        await runtime.stop_sandbox(sandbox_id)
        await runtime.remove_container(container_id)
        await runtime.remove_sandbox(sandbox_id)

    try:
        began = clock.monotonic()
        made = await all_of(start(1000 + number) for number in range(count))
        up = clock.monotonic() - began
        began = clock.monotonic()
        await all_of(end(*one) for one in made)
        return up, clock.monotonic() - began
    finally:
        await runtime.close()


def stream_figures(cluster: SampanProcess, socket_path: str, pod: Obj) -> Row:
    """Commands, logs and forwarded ports: through the API, and at the runtime's own streaming
    server, turn by turn and with the same client."""
    kubectl = cluster.kubectl
    starts = [_timed(lambda: kubectl("get", "--raw", "/version")) for _ in range(ROUNDS)]
    execs = [_timed(lambda: kubectl("exec", name_of(pod), "--", "true")) for _ in range(ROUNDS)]
    start = statistics.median(starts)
    began = time.monotonic()
    log_bytes = len(kubectl("logs", name_of(pod)))
    logs_seconds = time.monotonic() - began
    return {
        "kubectl exec p50, ms": 1000 * statistics.median(execs),
        "exec without kubectl's start, ms": 1000 * (statistics.median(execs) - start),
        **asyncio.run(_streams(cluster, socket_path, pod)),
        "kubectl logs, MB/s": log_bytes / 1e6 / logs_seconds,
        "logs without kubectl's start, MB/s": log_bytes / 1e6 / max(logs_seconds - start, 0.001),
    }


async def _streams(cluster: SampanProcess, socket_path: str, pod: Obj) -> Row:
    clock = SystemClock()
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    context = tls.client_context(ca_data=connection.ca, pair_data=connection.pair)
    api, plain = HttpClient(ssl_context=context), HttpClient()
    runtime = CriRuntime(socket_path, clock)
    await runtime.connect(30.0)
    try:
        both = _BothWays(runtime, api, plain, connection.server, pod)
        return {**await both.commands(), **await both.ports(), **await both.logs()}
    finally:
        await runtime.close()
        await api.close()
        await plain.close()


class _BothWays:
    """One pod, asked through the API server and at the runtime."""

    def __init__(
        self, runtime: CriRuntime, api: HttpClient, plain: HttpClient, server: str, pod: Obj
    ) -> None:
        self._runtime, self._api, self._plain = runtime, api, plain
        self._server, self._pod = server, pod
        status = pod["status"]["containerStatuses"][0]
        self._container = status["containerID"].rpartition("/")[2]

    async def commands(self) -> Row:
        through, own, plainest = [], [], []
        for _ in range(ROUNDS):
            through.append(await _took(self._api_exec(["true"])))
            own.append(await _took(self._runtime_exec(["true"])))
            plainest.append(await _took(self._runtime.exec_sync(self._container, ["true"], 10.0)))
        ours, theirs = statistics.median(through), statistics.median(own)
        sync = statistics.median(plainest)
        return {
            "exec through the API p50, ms": 1000 * ours,
            "exec at the runtime's server p50, ms": 1000 * theirs,
            "runtime's ExecSync p50, ms": 1000 * sync,
            "exec ÷ runtime's server": ours / theirs,
            "exec ÷ ExecSync": ours / sync,
        }

    async def ports(self) -> Row:
        through, own = [], []
        request = b"GET /big HTTP/1.0\r\n\r\n"
        url = port_forward_url(self._server, "default", name_of(self._pod))
        observed = await self._runtime.pod(uid_of(self._pod))
        assert observed is not None
        for _ in range(FEW):
            count, seconds = await download(self._api, url, WEB_PORT, request)
            through.append(count / 1e6 / seconds)
            there = await self._runtime.port_forward_url(observed.sandboxes[0].id)
            count, seconds = await download(self._plain, there, WEB_PORT, request)
            own.append(count / 1e6 / seconds)
        ours, theirs = statistics.median(through), statistics.median(own)
        return {
            "port-forward, MB/s": ours,
            "port-forward at the runtime's server, MB/s": theirs,
            "port-forward ÷ runtime's server": ours / theirs,
        }

    async def logs(self) -> Row:
        """The runtime serves no logs: the nearest that it has is a command that writes as much."""
        path = f"/api/v1/namespaces/default/pods/{name_of(self._pod)}/log"
        through, own = [], []
        for _ in range(FEW):
            began = time.monotonic()
            stream = await self._api.stream("GET", self._server + path)
            count = sum([len(chunk) async for chunk in stream])
            through.append(count / 1e6 / (time.monotonic() - began))
            began = time.monotonic()
            written, _ = await self._runtime_exec(["head", "-c", str(count), "/www/big"])
            own.append(len(written) / 1e6 / (time.monotonic() - began))
        ours, theirs = statistics.median(through), statistics.median(own)
        return {
            "logs through the API, MB/s": ours,
            "as much by exec at the runtime's server, MB/s": theirs,
            "logs ÷ runtime's server": ours / theirs,
        }

    async def _api_exec(self, command: list[str]) -> tuple[bytes, bytes]:
        url = exec_url(self._server, "default", name_of(self._pod), command)
        return await run_command(self._api, url)

    async def _runtime_exec(self, command: list[str]) -> tuple[bytes, bytes]:
        streams = StreamOptions(False, stdout=True, stderr=True, tty=False, command=tuple(command))
        url = await self._runtime.exec_url(self._container, streams)
        return await run_command(self._plain, url)


async def _took(work: Awaitable[object]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _pause(name: str) -> Obj:
    container = {"name": "c", "image": PAUSE_IMAGE, "imagePullPolicy": "IfNotPresent"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }
