"""Killing containers: preStop, stop signal, grace period, SIGKILL; sidecars last.

Job: stop one container or a whole pod within its grace period.
Invariant: a preStop hook runs once per container and inside the grace period.
Owner: Performer and PodSync, one call at a time per pod.
"""

from sampan.api.objects import Obj, uid_of
from sampan.api.rules.pods import init_containers, is_sidecar
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.tasks import all_of
from sampan.core.telemetry.trace_context import note
from sampan.core.telemetry.traces import NO_TRACES, Traces
from sampan.kubelet.context import LANE
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ContainerStatus,
    ObservedPod,
    Role,
    Runtime,
    address_of,
)
from sampan.kubelet.contracts.spec import find_container, grace_seconds_of
from sampan.kubelet.pods.hooks import HookFailure, Hooks, Subject, handler_of
from sampan.kubelet.pods.pod_state import MINIMUM_GRACE_SECONDS
from sampan.kubelet.status.recorder import PodEvents

log = get_logger(__name__)

# As upstream: a hook that used up the grace still leaves the process this long.
AFTER_HOOK_SECONDS = 2.0


class Killer:
    def __init__(
        self,
        *,
        runtime: Runtime,
        hooks: Hooks,
        events: PodEvents,
        clock: Clock,
        traces: Traces = NO_TRACES,
    ) -> None:
        self._runtime, self._hooks, self._events, self._clock = runtime, hooks, events, clock
        self._traces = traces
        self._told: set[str] = set()  # containers whose end was announced, and whose hook ran

    async def kill_pod(self, pod: Obj, observed: ObservedPod, grace_seconds: float | None) -> None:
        """Every container, then the sandboxes. No grace given: the pod's own."""
        await self.kill_containers(pod, observed, grace_seconds)
        await all_of(self._runtime.stop_sandbox(sandbox.id) for sandbox in observed.sandboxes)

    async def kill_containers(
        self, pod: Obj, observed: ObservedPod, grace_seconds: float | None
    ) -> None:
        grace = grace_seconds_of(pod) if grace_seconds is None else grace_seconds
        deadline = self._clock.monotonic() + grace
        running = [
            container
            for container in observed.containers
            if container.state is not ContainerState.EXITED
        ]
        order = [container["name"] for container in init_containers(pod) if is_sidecar(container)]
        sidecars = sorted(
            (item for item in running if item.name in order),
            key=lambda item: order.index(item.name),
            reverse=True,
        )
        others = [item for item in running if item.name not in order]
        address = address_of(observed)
        await all_of(self.kill_container(pod, other, grace, "", address) for other in others)
        for sidecar in sidecars:
            left = max(deadline - self._clock.monotonic(), MINIMUM_GRACE_SECONDS)
            await self.kill_container(pod, sidecar, left, "", address)

    async def kill_container(
        self,
        pod: Obj,
        container: ContainerStatus,
        grace_seconds: float | None,
        why: str,
        address: str,
    ) -> None:
        grace = grace_seconds_of(pod) if grace_seconds is None else grace_seconds
        if container.state is ContainerState.RUNNING and container.id not in self._told:
            self._told.add(container.id)
            message = why or f"Stopping container {container.name}"
            self._events.normal(pod, "Killing", message, container=container.name)
            grace = await self._after_hook(pod, container, grace, address)
        stopping = self._stop(pod, container, max(grace, MINIMUM_GRACE_SECONDS))
        await self._traces.timed(uid_of(pod), LANE, f"stop {container.name}", stopping)
        self._told.discard(container.id)

    async def _stop(self, pod: Obj, container: ContainerStatus, grace: float) -> None:
        note("grace period", f"{grace:g} s")
        signal = stop_signal(pod, container.name)
        if signal and container.state is ContainerState.RUNNING:
            await self._runtime.signal_container(container.id, signal, grace)
            grace = 0.0  # whatever has not ended by now is killed
        await self._runtime.stop_container(container.id, grace)

    async def stop_failed(self, pod: Obj, container_id: str, name: str) -> None:
        """Its postStart hook failed: stop what was just started."""
        self._events.normal(pod, "Killing", "FailedPostStartHook", container=name)
        await self._runtime.stop_container(container_id, grace_seconds_of(pod))

    async def _after_hook(
        self, pod: Obj, container: ContainerStatus, grace: float, address: str
    ) -> float:
        """Run the preStop hook; what is left of the grace."""
        role, spec = find_container(pod, container.name) or (Role.NORMAL, {})
        handler = handler_of(spec, "preStop")
        if handler is None or role is Role.EPHEMERAL:
            return grace
        began = self._clock.monotonic()
        try:
            hook = self._hooks.run(handler, Subject(spec, container.id, address, pod), grace)
            step = f"preStop hook of {container.name}"
            await self._traces.timed(uid_of(pod), LANE, step, hook)
        except HookFailure as error:
            log.info("preStop hook failed", container=container.name, error=error)
            self._events.warning(
                pod, "FailedPreStopHook", "PreStopHook failed", container=container.name
            )
        return max(grace - (self._clock.monotonic() - began), AFTER_HOOK_SECONDS)


def stop_signal(pod: Obj, name: str) -> str:
    """The container's own; empty: the image's, or SIGTERM."""
    _, spec = find_container(pod, name) or (Role.NORMAL, {})
    return str((spec.get("lifecycle") or {}).get("stopSignal") or "")
