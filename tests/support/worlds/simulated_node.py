"""One simulated node against a small API, in virtual time: the stage of the node agent's tests.

Job: start and restart an agent over one runtime, make pods, wait for what should come.
"""

import asyncio
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sampan.api.objects import Obj
from sampan.api.resources import EVENTS, NODES, PODS
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.runtime import ObservedPod
from sampan.kubelet.kubelet import Kubelet
from sampan.kubelet.settings import Capacity, KubeletSettings
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from sampan.kubelet.simulated.scenario import NOTHING
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi

SCRIPT = "simulated.sampan.dev/"


class SimulatedNode:
    def __init__(self, name: str = "node-1", **changes: Any) -> None:
        self.clock = LoopClock()
        self.api = SmallApi(self.clock)
        scenario = changes.get("scenario", NOTHING)
        self.runtime = SimulatedRuntime(clock=self.clock, node_name=name, scenario=scenario)
        self.metrics = Metrics()
        self._directory = tempfile.TemporaryDirectory(prefix="sampan-node-")
        base = KubeletSettings(
            node_name=name,
            simulated=True,
            root_dir=f"{self._directory.name}/root",
            log_dir=f"{self._directory.name}/logs",
            capacity=Capacity(cpu_milli=4000, memory_bytes=8 * 1024**3),
        )
        self.settings = replace(base, **changes)
        self.log_dir = Path(self.settings.log_dir)
        self.kubelet: Kubelet
        self._tasks: Tasks | None = None
        self._starts = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()
        await self.runtime.close()
        self._directory.cleanup()

    async def start(self, *, wait: bool = True) -> None:
        """Start the agent; when it already ran, this is its restart."""
        self._starts += 1
        self._tasks = Tasks("test")
        self.kubelet = Kubelet(
            NodeContext(
                settings=self.settings,
                client=self.api,
                runtime=self.runtime,
                clock=self.clock,
                metrics=self.metrics,
                rng=random.Random(self._starts),
                start_at_once=self.runtime.start_at_once,
            )
        )
        self._tasks.start("kubelet", self.kubelet.run())
        if wait:
            async with asyncio.timeout(60):
                await self.kubelet.node_ready.wait()

    async def stop(self) -> None:
        """The agent goes; containers stay."""
        if self._tasks is not None:
            await self._tasks.stop()
            self._tasks = None

    async def leave_to_new_process(self) -> None:
        """The agent's whole process goes; the next one has only what the API shows."""
        await self.stop()
        await self.runtime.close()
        self.runtime = SimulatedRuntime(
            clock=self.clock, node_name=self.settings.node_name, scenario=self.settings.scenario
        )
        self.runtime.table.take_over(self.api.objects(PODS), self.settings.log_dir)

    async def make(self, name: str = "web", namespace: str = "default", **changes: Any) -> Obj:
        pod = pod_named(name, node_name=self.settings.node_name, **changes)
        return await self.api.create(PODS, pod, namespace)

    async def delete(self, name: str = "web", grace_seconds: int | None = None) -> None:
        await self.api.delete(PODS, "default", name, grace_seconds=grace_seconds)

    def pod(self, name: str = "web") -> Obj:
        found = self.api.find(PODS, "default", name)
        assert found is not None, f"there is no pod {name}"
        return found

    def has(self, name: str = "web") -> bool:
        return self.api.find(PODS, "default", name) is not None

    def status(self, name: str = "web") -> Obj:
        status: Obj = self.pod(name).get("status") or {}
        return status

    def container(self, name: str = "web", index: int = 0) -> Obj:
        statuses = self.status(name).get("containerStatuses") or [{}]
        found: Obj = statuses[index]
        return found

    def node(self) -> Obj:
        found = self.api.find(NODES, "", self.settings.node_name)
        assert found is not None
        return found

    def events(self, name: str = "web") -> list[tuple[str, str]]:
        return [
            (event["reason"], event["message"])
            for event in self.api.objects(EVENTS)
            if event["involvedObject"]["name"] == name
        ]

    async def observed(self, name: str = "web") -> ObservedPod | None:
        return next((pod for pod in await self.runtime.pods() if pod.name == name), None)

    async def until(
        self, holds: Callable[[], bool], seconds: float = 120.0, every: float = 0.01
    ) -> None:
        """Let virtual time pass until `holds`."""
        deadline = self.clock.monotonic() + seconds
        while not holds():
            assert self.clock.monotonic() < deadline, "waited in vain"
            await asyncio.sleep(every)

    async def until_phase(self, phase: str, name: str = "web", seconds: float = 120.0) -> None:
        await self.until(lambda: self.status(name).get("phase") == phase, seconds)

    async def settle(self) -> None:
        """Until nothing is being done and nothing waits to be written."""
        await asyncio.sleep(0.05)
        await self.until(self.kubelet.is_idle)


def pod_named(
    name: str,
    *,
    node_name: str = "",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    containers: list[Obj] | None = None,
    script: dict[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """A pod; `script` has the simulated runtime's annotations without their prefix."""
    notes = {
        **(annotations or {}),
        **{SCRIPT + key: value for key, value in (script or {}).items()},
    }
    pod: Obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers or [{"name": "main", "image": "app:1"}], **spec},
    }
    if notes:
        pod["metadata"]["annotations"] = notes
    if labels:
        pod["metadata"]["labels"] = labels
    if node_name:
        pod["spec"]["nodeName"] = node_name
    return pod
