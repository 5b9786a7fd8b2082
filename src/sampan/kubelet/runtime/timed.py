"""A runtime that counts: how often and how long each operation of the real one takes.

Job: pass every call of the Runtime contract on, and observe it under upstream's metric names.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from sampan.core.clock import Clock
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.runtime import Runtime, RuntimeEvent, RuntimeFailure

# Our names → the operation_type that dashboards know.
OPERATIONS = {
    "info": "status",
    "pods": "list_podsandbox",
    "pod": "podsandbox_status",
    "run_sandbox": "run_podsandbox",
    "stop_sandbox": "stop_podsandbox",
    "remove_sandbox": "remove_podsandbox",
    "image": "image_status",
    "images": "list_images",
    "exec_url": "exec",
    "attach_url": "attach",
    "port_forward_url": "port_forward",
    "reopen_log": "reopen_container_log",
    "layer_bytes": "container_stats",
    "layers": "list_container_stats",
    "checkpoint": "checkpoint_container",
}
BUCKETS = (0.005, 0.0125, 0.03125, 0.078125, 0.1953125, 0.48828125, 1.220703125, 3.0517578125)


class _Timed:
    """Has every method of Runtime: those that are not written here are looked up."""

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

    def events(self) -> AsyncIterator[RuntimeEvent]:
        return self._runtime.events()

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        wrapped = self._made(name, getattr(self._runtime, name))
        setattr(self, name, wrapped)  # looked up once
        return wrapped

    def _made(
        self, name: str, call: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        operation = OPERATIONS.get(name, name)

        async def timed(*arguments: Any, **named: Any) -> Any:
            began = self._clock.monotonic()
            self._count.add(operation)
            try:
                return await call(*arguments, **named)
            except RuntimeFailure:
                self._errors.add(operation)
                raise
            finally:
                self._seconds.observe(self._clock.monotonic() - began, operation)

        return timed


def timed(runtime: Runtime, *, clock: Clock, metrics: Metrics) -> Runtime:
    made: Any = _Timed(runtime, clock=clock, metrics=metrics)
    counted: Runtime = made
    return counted
