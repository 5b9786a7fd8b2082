"""What the node agent itself adds to the runtime's time: everything between the runtime's calls.

Job: run the agent in this process over a real containerd and an API that answers at once; note when
    a call to either is under way; what remains of create→Running and of delete→gone is the agent's.
    `python -m tests.bench.agent_overhead` prints it; `overheads` gives it to others.
"""

import argparse
import asyncio
import inspect
import random
import statistics
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj, name_of
from sampan.api.resources import CONFIG_MAPS, PODS
from sampan.core.clock import Clock, SystemClock
from sampan.core.metrics import Metrics
from sampan.core.mounts import unmount_all
from sampan.core.tasks import Tasks
from sampan.kubelet.cgroups.limits import root_of
from sampan.kubelet.cgroups.pod_cgroups import remove_root
from sampan.kubelet.context import NodeContext
from sampan.kubelet.images.reference import PAUSE_IMAGE
from sampan.kubelet.kubelet import Kubelet
from sampan.kubelet.settings import KubeletSettings
from tests.support.parts.private_runtime import private_runtime
from tests.support.worlds.small_api import SmallApi

NODE = "node"
SECONDS = 60.0
TARGET_MS = 15.0
Span = tuple[float, float]


class Noted:
    """Has every method of what it wraps; notes from when to when a call was under way."""

    def __init__(self, real: Any, clock: Clock, spans: list[Span]) -> None:
        self._real, self._clock, self._spans = real, clock, spans

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not inspect.iscoroutinefunction(found):
            return found
        noted = self._made(found)
        setattr(self, name, noted)
        return noted

    def _made(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def noted(*arguments: Any, **named: Any) -> Any:
            began = self._clock.monotonic()
            try:
                return await call(*arguments, **named)
            finally:
                self._spans.append((began, self._clock.monotonic()))

        return noted


def uncovered(begin: float, end: float, spans: Iterable[Span]) -> float:
    """How much of begin…end lies in none of the spans."""
    left, reached = 0.0, begin
    for first, last in sorted(spans):
        if first > end:
            break
        left += max(0.0, first - reached)
        reached = max(reached, last)
    return left + max(0.0, end - reached)


async def overheads(directory: Path, rounds: int) -> dict[str, float]:
    """Medians, in milliseconds."""
    spans: list[Span] = []
    (directory / "kubelet").mkdir(parents=True)
    async with private_runtime(directory) as node:
        clock, api, tasks = node.clock, SmallApi(node.clock), Tasks("bench")
        await api.create(CONFIG_MAPS, _root_ca(), "default")
        kubelet = Kubelet(
            NodeContext(
                settings=_settings(directory),
                client=Noted(api, clock, spans),
                runtime=Noted(node.runtime, clock, spans),
                clock=clock,
                metrics=Metrics(),
                rng=random.Random(1),
            )
        )
        tasks.start("kubelet", kubelet.run())
        try:
            await asyncio.wait_for(kubelet.node_ready.wait(), SECONDS)
            lives = [await _life(api, f"bench-{number}", spans, clock) for number in range(rounds)]
        finally:
            await tasks.stop()
            remove_root(directory)
            unmount_all(str(directory / "kubelet"))  # which it shares with drivers
    # The first pod pays for what only a first one pays for.
    starts, ends = zip(*lives[1:], strict=True)
    return {
        "agent's own create→Running p50, ms": 1000 * statistics.median(starts),
        "agent's own delete→gone p50, ms": 1000 * statistics.median(ends),
    }


async def _life(api: SmallApi, name: str, spans: list[Span], clock: Clock) -> tuple[float, float]:
    spans.clear()
    began = clock.monotonic()
    await api.create(PODS, _pod(name), "default")
    running = await _when(api, name, clock, lambda pod: _phase(pod) == "Running")
    start = uncovered(began, running, spans)
    await clock.sleep(0.1)
    spans.clear()
    began = clock.monotonic()
    await api.delete(PODS, "default", name)
    gone = await _when(api, name, clock, lambda pod: pod is None)
    return start, uncovered(began, gone, spans)


async def _when(
    api: SmallApi, name: str, clock: Clock, holds: Callable[[Obj | None], bool]
) -> float:
    """The moment at which a watch shows it."""
    revision = (await api.list(PODS, "default")).revision
    async with asyncio.timeout(SECONDS):
        if holds(api.find(PODS, "default", name)):
            return clock.monotonic()
        async for event in api.watch(PODS, "default", revision=revision):
            if name_of(event.object) == name and holds(api.find(PODS, "default", name)):
                return clock.monotonic()
    raise AssertionError("a watch does not end by itself")


def _phase(pod: Obj | None) -> str:
    return str(((pod or {}).get("status") or {}).get("phase"))


def _settings(directory: Path) -> KubeletSettings:
    return KubeletSettings(
        NODE,
        root_dir=str(directory / "kubelet"),
        log_dir=str(directory / "logs"),
        checkpoint=str(directory / "kubelet" / "allocated_pods_state"),
        cgroup_root=root_of(directory),
    )


def _root_ca() -> Obj:
    return {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "none"}}


def _pod(name: str) -> Obj:
    """As the API server makes one of `kubectl run`: with an account's token."""
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
    bundle = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca"}]}}
    place = "/var/run/secrets/kubernetes.io/serviceaccount"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": NODE,
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "volumes": [{"name": "token", "projected": {"sources": [token, bundle]}}],
            "containers": [
                {
                    "name": "c",
                    "image": PAUSE_IMAGE,
                    "imagePullPolicy": "IfNotPresent",
                    "volumeMounts": [{"name": "token", "mountPath": place, "readOnly": True}],
                }
            ],
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="pods (default: %(default)s)")
    given = parser.parse_args()
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="sampan-agent-") as folder:
        began = clock.monotonic()
        for name, figure in asyncio.run(overheads(Path(folder), given.rounds + 1)).items():
            print(f"  {name:40} {figure:8.1f}   target {TARGET_MS:g}")
        print(f"  took {clock.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
