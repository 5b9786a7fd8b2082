"""Figures of one node: many pods at once, exec, logs; each beside the runtime's own.

Job: measure through the API and, in the same run, straight at the container runtime.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from sampan.api.objects import Obj, name_of
from sampan.api.resources import PODS
from sampan.client.contract import Client
from sampan.core.clock import Clock, SystemClock
from sampan.core.tasks import all_of
from sampan.kubelet import translate
from sampan.kubelet.cri_runtime import CriRuntime
from sampan.kubelet.pause_image import PAUSE_IMAGE
from sampan.testing.sampan_process import SampanProcess
from tests.bench.raw_cri import pause_pod

MANY = 40
_SECONDS = 120.0
Row = dict[str, float]


async def many_at_once(client: Client, clock: Clock, count: int = MANY) -> tuple[float, float]:
    """(until all of them run, until all of them are gone)"""
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
                began = clock.monotonic()
                await all_of(client.delete(PODS, "default", name) for name in names)
    return up, clock.monotonic() - began


async def many_raw(
    socket_path: str, directory: Path, clock: Clock, count: int = MANY
) -> tuple[float, float]:
    """The same, all at once, by nothing but the calls that it takes."""
    runtime = CriRuntime(socket_path, clock)
    await runtime.connect(30.0)
    node = translate.NodeFacts(
        "raw", root_dir=str(directory / "kubelet"), log_root=str(directory / "logs")
    )
    image = await runtime.image(PAUSE_IMAGE)
    assert image is not None

    async def start(number: int) -> tuple[str, str]:
        pod = pause_pod(number)
        sandbox = translate.sandbox_spec(pod, attempt=0, node=node)
        container = translate.container_spec(
            pod, pod["spec"]["containers"][0], attempt=0, image_id=image.id, image=image,
            objects={}, pod_ips=(), node=node,
        )  # fmt: skip
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


def exec_figures(cluster: SampanProcess, socket_path: str, pod: Obj, rounds: int = 20) -> Row:
    """Round trips of a command that does nothing: kubectl, and the runtime's own ExecSync."""
    container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    ours = [_timed(lambda: cluster.kubectl("exec", name_of(pod), "--", "true"))
            for _ in range(rounds)]  # fmt: skip
    start = [_timed(lambda: cluster.kubectl("get", "--raw", "/version")) for _ in range(rounds)]
    raw = asyncio.run(_exec_raw(socket_path, container, rounds))
    net = statistics.median(ours) - statistics.median(start)
    return {
        "kubectl exec p50, ms": 1000 * statistics.median(ours),
        "exec without kubectl's start, ms": 1000 * net,
        "runtime's ExecSync p50, ms": 1000 * raw,
        "exec ÷ ExecSync": net / raw,
    }


async def _exec_raw(socket_path: str, container_id: str, rounds: int) -> float:
    clock = SystemClock()
    runtime = CriRuntime(socket_path, clock)
    await runtime.connect(30.0)
    took = []
    try:
        for _ in range(rounds):
            began = clock.monotonic()
            await runtime.exec_sync(container_id, ["true"], 10.0)
            took.append(clock.monotonic() - began)
    finally:
        await runtime.close()
    return statistics.median(took)


def log_figures(cluster: SampanProcess, pod: str) -> Row:
    """What `kubectl logs` carries of a log that is on the disk already."""
    began = time.monotonic()
    size = len(cluster.kubectl("logs", pod))
    return {"kubectl logs, MB/s": size / 1e6 / (time.monotonic() - began)}


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
