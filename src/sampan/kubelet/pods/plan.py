"""Pod actions: what must happen to a pod's sandbox and containers next. Pure.

Job: (pod, what the runtime has, now) → actions, in the order in which to perform them. Pure.
Invariant: a plan that was performed without failure leads to an empty plan or to new progress;
    a pod that is as it should be has an empty plan.
Invariant: init containers run one after the other, and no normal container starts before them.
Invariant: nothing is planned for a pod whose restart policy says that it is done.
"""

from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from sampan.api.objects import Obj
from sampan.api.rules.pod_resources import quantities
from sampan.api.rules.pods import (
    containers,
    ephemeral_containers,
    init_containers,
    is_host_network,
    is_sidecar,
    restart_policy,
)
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.probes_hook import NO_CHECKS, Checks
from sampan.kubelet.contracts.resize_state import Applied, actual_resources
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ContainerStatus,
    ObservedPod,
    Role,
    SandboxStatus,
    newest_sandbox,
)
from sampan.kubelet.contracts.spec import (
    HASH_ANNOTATION,
    RESIZABLE,
    container_hash,
    latest,
    resources_of,
    should_restart,
    with_roles,
)
from sampan.kubelet.pods import crash_backoff


class KillReason(Enum):
    """Why a pod is stopped that may run again, or is done."""

    SANDBOX_CHANGED = "sandbox changed"
    ALL_CONTAINERS_ENDED = "all containers ended"
    INIT_CONTAINER_FAILED = "init container failed"


@dataclass(frozen=True, slots=True)
class KillPod:
    """Stop every container, then the sandboxes."""

    why: KillReason


@dataclass(frozen=True, slots=True)
class _Doom:
    """Why a container that runs is stopped."""

    sentence: str
    starts_again: bool  # whatever the pod's restart policy says
    grace_seconds: float | None = None  # the failed probe's own

    def kill(self, running: ContainerStatus, again: bool) -> "KillContainer":
        said = f"{self.sentence}, will be restarted" if again else self.sentence
        return KillContainer(running.id, running.name, said, self.grace_seconds)


@dataclass(frozen=True, slots=True)
class KillContainer:
    id: str
    name: str
    why: str  # for the event; empty: the plain sentence
    grace_seconds: float | None = None  # the failed probe's own; None: the pod's


@dataclass(frozen=True, slots=True)
class RemoveContainer:
    id: str


@dataclass(frozen=True, slots=True)
class CreateSandbox:
    attempt: int


@dataclass(frozen=True, slots=True)
class StartContainer:
    name: str
    role: Role
    attempt: int = 0
    streak: int = 0


@dataclass(frozen=True, slots=True)
class Resize:
    """Other limits for a container that goes on running."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class HoldBack:
    """The container crashed too often: not before `until`."""

    name: str
    delay_seconds: float
    until: float


Action: TypeAlias = (
    KillPod | KillContainer | RemoveContainer | CreateSandbox | StartContainer | Resize | HoldBack
)


def plan(
    pod: Obj,
    observed: ObservedPod | None,
    now: float,
    checks: Checks = NO_CHECKS,
    applied: Applied = MappingProxyType({}),
) -> list[Action]:
    """`applied`: resources that containers got after they were created, by container id."""
    sandbox = newest_sandbox(observed)
    if observed is None or sandbox is None or _sandbox_changed(pod, observed, sandbox):
        return _with_new_sandbox(pod, observed, sandbox, now)
    actions: list[Action] = _strangers(pod, observed)
    actions += [
        StartContainer(container["name"], Role.EPHEMERAL)
        for container in ephemeral_containers(pod)
        if latest(observed, container["name"]) is None
    ]
    inits, done = _inits(pod, observed, sandbox.id, now, checks)
    if not done:
        return actions + inits
    normals, alive = _normals(pod, observed, now, checks)
    if not alive:
        # Sidecars must not keep a finished pod alive.
        return [KillPod(KillReason.ALL_CONTAINERS_ENDED)] if _runs_anything(observed) else []
    resizes = [] if inits or normals else _resizes(pod, observed, applied)
    return actions + inits + normals + resizes


def _resizes(pod: Obj, observed: ObservedPod, applied: Applied) -> list[Action]:
    """Running containers that were given other resources than they have."""
    actions: list[Action] = []
    for role, container in with_roles(pod):
        running = latest(observed, container["name"])
        if role in (Role.INIT, Role.EPHEMERAL) or not _is_running(running) or running is None:
            continue
        changed = changed_resources(container, running, applied)
        if not changed:
            continue
        if changed & _needing_restart(container):
            said = f"Container {running.name} resize requires restart"
            actions.append(KillContainer(running.id, running.name, said))
            actions.append(_next_start(container, role, running))
        else:
            actions.append(Resize(running.id, running.name))
    return actions


def changed_resources(container: Obj, running: ContainerStatus, applied: Applied) -> set[str]:
    """The names (cpu, memory) of which the container has not what it was given."""
    has = actual_resources(running, applied)
    if has is None:
        return set()
    wants = resources_of(container)
    if wants == has:
        return set()
    return {
        name
        for kind in ("requests", "limits")
        for name in RESIZABLE
        if quantities(wants.get(kind)).get(name) != quantities(has.get(kind)).get(name)
    }


def _needing_restart(container: Obj) -> set[str]:
    return {
        item.get("resourceName", "")
        for item in container.get("resizePolicy") or ()
        if item.get("restartPolicy") == "RestartContainer"
    }


def was_initialized(pod: Obj, observed: ObservedPod | None) -> bool:
    """A normal container was created once: the init containers are behind us, even where the
    garbage collector took them."""
    return any(latest(observed, container["name"]) for container in containers(pod))


def _runs_anything(observed: ObservedPod) -> bool:
    return any(sandbox.ready for sandbox in observed.sandboxes) or any(
        container.state is ContainerState.RUNNING for container in observed.containers
    )


def _sandbox_changed(pod: Obj, observed: ObservedPod, sandbox: SandboxStatus) -> bool:
    if not sandbox.ready or sum(item.ready for item in observed.sandboxes) > 1:
        return True
    if sandbox.host_network != is_host_network(pod):
        return True
    return not sandbox.host_network and not sandbox.ips


def _with_new_sandbox(
    pod: Obj, observed: ObservedPod | None, old: SandboxStatus | None, now: float
) -> list[Action]:
    kill: list[Action] = [KillPod(KillReason.SANDBOX_CHANGED)] if old else []
    wanted = [container for container in containers(pod) if _is_wanted(pod, container, observed)]
    if _is_done(pod, observed, old) or (not wanted and was_initialized(pod, observed)):
        return kill if observed and _runs_anything(observed) else []
    create: list[Action] = [*kill, CreateSandbox(old.attempt + 1 if old else 0)]
    inits = init_containers(pod)
    if inits:
        # A new sandbox is a new beginning: init containers run again.
        role = Role.SIDECAR if is_sidecar(inits[0]) else Role.INIT
        return create + _start_anew(inits[0], role, latest(observed, inits[0]["name"]), now)
    for item in wanted:
        create += _start_anew(item, Role.NORMAL, latest(observed, item["name"]), now)
    return create


def _is_done(pod: Obj, observed: ObservedPod | None, old: SandboxStatus | None) -> bool:
    """It ran once, and never runs again."""
    ran = observed is not None and bool(observed.containers)
    return old is not None and ran and restart_policy(pod) == "Never"


def _is_wanted(pod: Obj, container: Obj, observed: ObservedPod | None) -> bool:
    last = latest(observed, container["name"])
    return _is_running(last) or should_restart(pod, container, last)


def _is_running(status: ContainerStatus | None) -> bool:
    return status is not None and status.state is ContainerState.RUNNING


def _start_anew(
    container: Obj, role: Role, last: ContainerStatus | None, now: float
) -> list[Action]:
    """As `_start`, in a new sandbox: what still runs will have been killed with the old one."""
    if last is not None and last.state is not ContainerState.EXITED:
        return [_next_start(container, role, last)]
    return _start(container, role, last, now)


def _strangers(pod: Obj, observed: ObservedPod) -> list[Action]:
    """Containers that run but are in the spec no more, or run twice."""
    names = {container["name"] for _, container in with_roles(pod)}
    kills: list[Action] = []
    seen: set[str] = set()
    for item in observed.containers:
        if item.state is ContainerState.RUNNING and (item.name not in names or item.name in seen):
            kills.append(KillContainer(item.id, item.name, ""))
        seen.add(item.name)
    return kills


def _inits(
    pod: Obj, observed: ObservedPod, sandbox_id: str, now: float, checks: Checks
) -> tuple[list[Action], bool]:
    """The next steps of initialization, and whether it is over."""
    if not init_containers(pod):
        return [], True
    initialized = was_initialized(pod, _of_sandbox(observed, sandbox_id))
    actions: list[Action] = []
    for container in init_containers(pod):
        last = latest(_of_sandbox(observed, sandbox_id), container["name"])
        if is_sidecar(container):
            actions += _sidecar(container, last, latest(observed, container["name"]), now, checks)
            if not initialized and not _has_started(container, last, checks):
                return actions, False
            continue
        if initialized or (last and last.state is ContainerState.EXITED and last.exit_code == 0):
            continue
        if last is None or last.state is not ContainerState.RUNNING:
            failed = last is not None and last.state is ContainerState.EXITED
            if failed and restart_policy(pod) == "Never":
                return [KillPod(KillReason.INIT_CONTAINER_FAILED)], False
            actions += _start(container, Role.INIT, latest(observed, container["name"]), now)
        return actions, False
    return actions, True


def _of_sandbox(observed: ObservedPod, sandbox_id: str) -> ObservedPod:
    if all(container.sandbox_id == sandbox_id for container in observed.containers):
        return observed
    mine = tuple(
        container for container in observed.containers if container.sandbox_id == sandbox_id
    )
    return ObservedPod(observed.uid, observed.name, observed.namespace, observed.sandboxes, mine)


def _sidecar(
    container: Obj,
    last: ContainerStatus | None,
    ever: ContainerStatus | None,
    now: float,
    checks: Checks,
) -> list[Action]:
    if last is None or last.state is not ContainerState.RUNNING:
        return _start(container, Role.SIDECAR, ever, now)
    doom = _doom_of(container, last, checks)
    if doom is None:
        return []
    return [doom.kill(last, again=True), _next_start(container, Role.SIDECAR, last)]


def _has_started(container: Obj, last: ContainerStatus | None, checks: Checks) -> bool:
    if last is None or last.state is not ContainerState.RUNNING:
        return False
    return checks.started.get(last.id, "startupProbe" not in container)


def _normals(
    pod: Obj, observed: ObservedPod, now: float, checks: Checks
) -> tuple[list[Action], bool]:
    """Actions for the normal containers, and whether any is, or will be, alive."""
    actions: list[Action] = []
    alive = False
    for container in containers(pod):
        last = latest(observed, container["name"])
        if last is None or last.state is not ContainerState.RUNNING:
            if should_restart(pod, container, last):
                alive = True
                actions += _start(container, Role.NORMAL, last, now)
            continue
        doom = _doom_of(container, last, checks)
        if doom is None:
            alive = True
            continue
        again = doom.starts_again or restart_policy(pod) != "Never"
        alive = alive or again
        actions.append(doom.kill(last, again))
        if again:
            actions.append(_next_start(container, Role.NORMAL, last))
    return actions, alive


def _doom_of(container: Obj, running: ContainerStatus, checks: Checks) -> _Doom | None:
    made_for = running.annotations.get(HASH_ANNOTATION)
    probe = checks.doomed.get(running.id)
    grace = (container.get(f"{probe}Probe") or {}).get("terminationGracePeriodSeconds")
    grace_seconds = None if grace is None else float(grace)
    if made_for is not None and made_for != container_hash(container):
        return _Doom(f"Container {running.name} definition changed", True, grace_seconds)
    if probe:
        return _Doom(f"Container {running.name} failed {probe} probe", False, grace_seconds)
    return None


def _next_start(container: Obj, role: Role, last: ContainerStatus) -> StartContainer:
    return StartContainer(
        container["name"], role, last.attempt + 1, crash_backoff.streak_after(last)
    )


def _start(container: Obj, role: Role, last: ContainerStatus | None, now: float) -> list[Action]:
    """Start it now, or say until when it has to wait."""
    name = container["name"]
    if last is None:
        return [StartContainer(name, role)]
    if last.state is ContainerState.CREATED:
        # Created but never started (we were interrupted): the same attempt once more.
        same = StartContainer(name, role, last.attempt, crash_backoff.streak_of(last))
        return [RemoveContainer(last.id), same]
    if last.state is ContainerState.UNKNOWN:
        why = f'Container is in "{last.state}" state, try killing it before restart'
        return [KillContainer(last.id, name, why), _next_start(container, role, last)]
    due = crash_backoff.due_at(last, now)
    if now < due:
        return [HoldBack(name, crash_backoff.delay_after(last), due)]
    return [_next_start(container, role, last)]
