"""Killing containers: preStop, stop signal, grace period, SIGKILL; sidecars last.

Job: stop one container or a whole pod within its grace period.
Invariant: a preStop hook runs once per container and inside the grace period.
Invariant: the hooks of a pod run at once; only the signals of its sidecars wait for their turn.
Owner: Performer and PodSync, one call at a time per pod.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from sampan.api.objects import Obj, uid_of
from sampan.api.rules.pods import containers, init_containers, is_sidecar
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
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
from sampan.kubelet.status.recorder import PodEvents

log = get_logger(__name__)

# As upstream: a hook, or others that used up the grace, still leave the process this long.
MINIMUM_STOP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Turn:
    """Of one container: when those have ended that go before it."""

    awaited: Sequence[asyncio.Event] = ()
    ended: asyncio.Event | None = None

    async def come(self) -> None:
        for other in self.awaited:
            await other.wait()

    def is_over(self) -> None:
        if self.ended is not None:
            self.ended.set()


class Turns:
    """Who of a pod's containers waits for whom: a sidecar for all normal containers, and for those
    sidecars that began after it. The last of them waits for the normal ones, each of the others for
    the one that comes after it."""

    def __init__(self, pod: Obj, running: Sequence[str]) -> None:
        self._ended = {name: asyncio.Event() for name in running}
        self._awaited: dict[str, list[asyncio.Event]] = {}
        names = (container["name"] for container in containers(pod))
        before = [self._ended[name] for name in names if name in self._ended]
        for container in reversed(init_containers(pod)):
            name = container["name"]
            if is_sidecar(container) and name in self._ended:
                self._awaited[name] = before
                before = [self._ended[name]]

    def of(self, name: str) -> Turn:
        return Turn(self._awaited.get(name, ()), self._ended[name])


@dataclass(frozen=True, slots=True)
class Death:
    """How a container goes."""

    grace_seconds: float
    why: str  # for the event; empty: the plain sentence
    address: str  # of its pod, for hooks
    turn: Turn


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
        running = [
            container
            for container in observed.containers
            if container.state is not ContainerState.EXITED
        ]
        turns = Turns(pod, [container.name for container in running])
        address = address_of(observed)
        await all_of(
            self._kill(pod, item, Death(grace, "", address, turns.of(item.name)))
            for item in running
        )

    async def kill_container(
        self,
        pod: Obj,
        container: ContainerStatus,
        grace_seconds: float | None,
        why: str,
        address: str,
    ) -> None:
        grace = grace_seconds_of(pod) if grace_seconds is None else grace_seconds
        await self._kill(pod, container, Death(grace, why, address, Turn()))

    async def _kill(self, pod: Obj, container: ContainerStatus, death: Death) -> None:
        deadline = self._clock.monotonic() + death.grace_seconds
        if container.state is ContainerState.RUNNING and container.id not in self._told:
            self._told.add(container.id)
            message = death.why or f"Stopping container {container.name}"
            self._events.normal(pod, "Killing", message, container=container.name)
            if death.grace_seconds > 0:
                await self._run_hook(pod, container, death)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline - self._clock.monotonic()):
                await death.turn.come()
        left = max(deadline - self._clock.monotonic(), MINIMUM_STOP_SECONDS)
        stopping = self._stop(pod, container, left)
        await self._traces.timed(uid_of(pod), LANE, f"stop {container.name}", stopping)
        self._told.discard(container.id)
        death.turn.is_over()

    async def _stop(self, pod: Obj, container: ContainerStatus, grace: float) -> None:
        note("grace period", f"{grace:g} s")
        signal = stop_signal(pod, container.name)
        if signal and container.state is ContainerState.RUNNING:
            await self._runtime.signal_container(container.id, signal, grace)
            grace = 0.0  # whatever has not ended by now is killed
        await self._runtime.stop_container(container.id, grace)

    async def stop_failed(self, pod: Obj, container_id: str, name: str, address: str) -> None:
        """Its postStart hook failed: stop what was just started."""
        runs = ContainerStatus(container_id, "", name, 0, ContainerState.RUNNING, "", "", 0.0)
        await self.kill_container(pod, runs, None, "FailedPostStartHook", address)

    async def _run_hook(self, pod: Obj, container: ContainerStatus, death: Death) -> None:
        role, spec = find_container(pod, container.name) or (Role.NORMAL, {})
        handler = handler_of(spec, "preStop")
        if handler is None or role is Role.EPHEMERAL:
            return
        try:
            subject = Subject(spec, container.id, death.address, pod)
            hook = self._hooks.run(handler, subject, death.grace_seconds)
            step = f"preStop hook of {container.name}"
            await self._traces.timed(uid_of(pod), LANE, step, hook)
        except HookFailure as error:
            log.info("preStop hook failed", container=container.name, error=error)
            self._events.warning(
                pod, "FailedPreStopHook", "PreStopHook failed", container=container.name
            )


def stop_signal(pod: Obj, name: str) -> str:
    """The container's own; empty: the image's, or SIGTERM."""
    _, spec = find_container(pod, name) or (Role.NORMAL, {})
    return str((spec.get("lifecycle") or {}).get("stopSignal") or "")
