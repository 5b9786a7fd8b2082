"""A runtime that counts: how often and how long each operation of the real one takes.

Job: pass every call of the Runtime contract on, and observe it under upstream's metric names.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import TypeVar

from sampan.core.clock import Clock
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.local_streams import LocalStreams, StreamOptions
from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    Credentials,
    ExecResult,
    Image,
    Layer,
    LinuxResources,
    ObservedPod,
    Runtime,
    RuntimeEvent,
    RuntimeFailure,
    RuntimeInfo,
    SandboxSpec,
)

T = TypeVar("T")
BUCKETS = (0.005, 0.0125, 0.03125, 0.078125, 0.1953125, 0.48828125, 1.220703125, 3.0517578125)


class TimedRuntime(Runtime):
    """The operation types are those that dashboards know."""

    def __init__(self, runtime: Runtime, *, clock: Clock, metrics: Metrics) -> None:
        self._runtime, self._clock = runtime, clock
        self._count = metrics.counter(
            "kubelet_runtime_operations_total",
            "Cumulative number of runtime operations by operation type.",
            ("operation_type",),
        )
        self._errors = metrics.counter(
            "kubelet_runtime_operations_errors_total",
            "Cumulative number of runtime operation errors by operation type.",
            ("operation_type",),
        )
        self._seconds = metrics.histogram(
            "kubelet_runtime_operations_duration_seconds",
            "Duration in seconds of runtime operations. Broken down by operation type.",
            ("operation_type",),
            buckets=BUCKETS,
        )

    @property
    def local_streams(self) -> LocalStreams | None:
        return self._runtime.local_streams

    async def _observe(self, operation: str, call: Awaitable[T]) -> T:
        began = self._clock.monotonic()
        self._count.add(operation)
        try:
            return await call
        except RuntimeFailure:
            self._errors.add(operation)
            raise
        finally:
            self._seconds.observe(self._clock.monotonic() - began, operation)

    async def info(self) -> RuntimeInfo:
        return await self._observe("status", self._runtime.info())

    async def pods(self) -> Sequence[ObservedPod]:
        return await self._observe("list_podsandbox", self._runtime.pods())

    async def pod(self, uid: str) -> ObservedPod | None:
        return await self._observe("podsandbox_status", self._runtime.pod(uid))

    async def run_sandbox(self, spec: SandboxSpec) -> str:
        return await self._observe("run_podsandbox", self._runtime.run_sandbox(spec))

    async def stop_sandbox(self, sandbox_id: str) -> None:
        await self._observe("stop_podsandbox", self._runtime.stop_sandbox(sandbox_id))

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self._observe("remove_podsandbox", self._runtime.remove_sandbox(sandbox_id))

    async def create_container(
        self, sandbox_id: str, container: ContainerSpec, sandbox: SandboxSpec
    ) -> str:
        call = self._runtime.create_container(sandbox_id, container, sandbox)
        return await self._observe("create_container", call)

    async def start_container(self, container_id: str) -> None:
        await self._observe("start_container", self._runtime.start_container(container_id))

    async def stop_container(self, container_id: str, grace_seconds: float) -> None:
        call = self._runtime.stop_container(container_id, grace_seconds)
        await self._observe("stop_container", call)

    async def signal_container(self, container_id: str, signal: str, seconds: float) -> bool:
        call = self._runtime.signal_container(container_id, signal, seconds)
        return await self._observe("signal_container", call)

    async def update_container(self, container_id: str, resources: LinuxResources) -> None:
        call = self._runtime.update_container(container_id, resources)
        await self._observe("update_container", call)

    async def remove_container(self, container_id: str) -> None:
        await self._observe("remove_container", self._runtime.remove_container(container_id))

    async def image(self, reference: str) -> Image | None:
        return await self._observe("image_status", self._runtime.image(reference))

    async def images(self) -> Sequence[Image]:
        return await self._observe("list_images", self._runtime.images())

    async def pull_image(self, reference: str, credentials: Credentials | None) -> str:
        call = self._runtime.pull_image(reference, credentials)
        return await self._observe("pull_image", call)

    async def remove_image(self, reference: str) -> None:
        await self._observe("remove_image", self._runtime.remove_image(reference))

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_seconds: float
    ) -> ExecResult:
        call = self._runtime.exec_sync(container_id, command, timeout_seconds)
        return await self._observe("exec_sync", call)

    async def exec_url(self, container_id: str, streams: StreamOptions) -> str:
        return await self._observe("exec", self._runtime.exec_url(container_id, streams))

    async def attach_url(self, container_id: str, streams: StreamOptions) -> str:
        return await self._observe("attach", self._runtime.attach_url(container_id, streams))

    async def port_forward_url(self, sandbox_id: str) -> str:
        return await self._observe("port_forward", self._runtime.port_forward_url(sandbox_id))

    async def reopen_log(self, container_id: str) -> None:
        await self._observe("reopen_container_log", self._runtime.reopen_log(container_id))

    async def layers(self) -> Mapping[str, Layer]:
        return await self._observe("list_container_stats", self._runtime.layers())

    async def checkpoint(self, container_id: str, path: str, seconds: float) -> None:
        call = self._runtime.checkpoint(container_id, path, seconds)
        await self._observe("checkpoint_container", call)

    async def layer_bytes(self, container_id: str) -> int:
        return await self._observe("container_stats", self._runtime.layer_bytes(container_id))

    def events(self) -> AsyncIterator[RuntimeEvent]:
        return self._runtime.events()

    async def close(self) -> None:
        await self._runtime.close()
