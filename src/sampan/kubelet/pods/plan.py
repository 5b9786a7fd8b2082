"""Pod actions: what must happen to a pod's sandbox and containers next. Pure.

Job: (pod, what the runtime has, now) → actions, in the order in which to perform them. Pure.
Invariant: a plan that was performed without failure leads to an empty plan or to new progress;
    a pod that is as it should be has an empty plan.
Invariant: init containers run one after the other, and no normal container starts before them.
Invariant: nothing is planned for a pod whose restart policy says that it is done.
"""

from types import MappingProxyType

from sampan.api.objects import Obj, is_deleted
from sampan.api.rules.pods import (
    containers,
    ephemeral_containers,
    init_containers,
    is_host_network,
    is_sidecar,
    restart_policy,
)
from sampan.kubelet.contracts.probes_hook import NO_CHECKS, Checks
from sampan.kubelet.contracts.resize_state import Applied
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ContainerStatus,
    ObservedPod,
    Role,
    SandboxStatus,
    newest_sandbox,
)
from sampan.kubelet.contracts.spec import (
    is_made_of,
    latest,
    restart_policy_of,
    restarts_after_kill,
    should_restart,
    with_roles,
)
from sampan.kubelet.pods.planning.actions import (
    Action,
    CreateSandbox,
    KillContainer,
    KillPod,
    KillReason,
    Resize,
    StartContainer,
)
from sampan.kubelet.pods.planning.inits import initialization
from sampan.kubelet.pods.planning.resizes import is_whole_resized
from sampan.kubelet.pods.planning.starts import USUAL, Restarts, Starts
from sampan.kubelet.pods.planning.steps import Inputs, Step, ended_by, resized


def plan(
    pod: Obj,
    observed: ObservedPod | None,
    now: float,
    checks: Checks = NO_CHECKS,
    applied: Applied = MappingProxyType({}),
    restarts: Restarts = USUAL,
) -> list[Action]:
    """`applied`: resources that containers got after they were created, by container id."""
    sandbox = newest_sandbox(observed)
    starts = Starts(observed, now, restarts)
    if observed is None or sandbox is None or _sandbox_changed(pod, observed, sandbox):
        return _with_new_sandbox(pod, observed, sandbox, starts)
    actions = [*_strangers(pod, observed), *_ephemeral(pod, observed)]
    inputs = Inputs(pod, starts, checks, applied)
    inits = initialization(inputs, _of_sandbox(observed, sandbox.id))
    if inits.failed:
        return [KillPod(KillReason.INIT_CONTAINER_FAILED)]
    if not inits.goes_on:
        return actions + inits.actions + _resizes(inits, inputs)
    normals = _normals(inputs, observed)
    if not normals.goes_on:
        # Sidecars must not keep a finished pod alive.
        return [KillPod(KillReason.ALL_CONTAINERS_ENDED)] if _runs_anything(observed) else []
    inits.add(normals)
    return actions + inits.actions + _resizes(inits, inputs)


def _resizes(step: Step, inputs: Inputs) -> list[Action]:
    whole = is_whole_resized(inputs.pod, inputs.applied)
    return [Resize(tuple(step.updates))] if step.updates or step.resized or whole else []


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
    pod: Obj, observed: ObservedPod | None, old: SandboxStatus | None, starts: Starts
) -> list[Action]:
    kill: list[Action] = [KillPod(KillReason.SANDBOX_CHANGED)] if old else []
    wanted = [container for container in containers(pod) if _is_wanted(pod, container, observed)]
    if _is_done(pod, observed, old) or (not wanted and _was_initialized(pod, observed)):
        return kill if observed and _runs_anything(observed) else []
    create: list[Action] = [*kill, CreateSandbox(old.attempt + 1 if old else 0)]
    inits = init_containers(pod)
    if inits:
        # A new sandbox is a new beginning: init containers run again.
        role = Role.SIDECAR if is_sidecar(inits[0]) else Role.INIT
        return create + starts.in_new_sandbox(inits[0], role)
    for item in wanted:
        create += starts.in_new_sandbox(item, Role.NORMAL)
    return create


def _was_initialized(pod: Obj, observed: ObservedPod | None) -> bool:
    """A normal container was created once."""
    return any(latest(observed, container["name"]) for container in containers(pod))


def _is_done(pod: Obj, observed: ObservedPod | None, old: SandboxStatus | None) -> bool:
    """It ran once, and never runs again."""
    ran = observed is not None and bool(observed.containers)
    return old is not None and ran and restart_policy(pod) == "Never"


def _is_wanted(pod: Obj, container: Obj, observed: ObservedPod | None) -> bool:
    """As upstream: what ended with its sandbox comes back, but for what is there to succeed once,
    and did."""
    last = latest(observed, container["name"])
    succeeded = last is not None and last.state is ContainerState.EXITED and last.exit_code == 0
    once = restart_policy_of(pod, container) == "OnFailure"
    return not is_deleted(pod) and not (once and succeeded)


def _of_sandbox(observed: ObservedPod, sandbox_id: str) -> ObservedPod:
    if all(container.sandbox_id == sandbox_id for container in observed.containers):
        return observed
    mine = tuple(
        container for container in observed.containers if container.sandbox_id == sandbox_id
    )
    return ObservedPod(observed.uid, observed.name, observed.namespace, observed.sandboxes, mine)


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


def _ephemeral(pod: Obj, observed: ObservedPod) -> list[Action]:
    """They are started even while the pod is being initialized, and never again."""
    return [
        StartContainer(container["name"], Role.EPHEMERAL)
        for container in ephemeral_containers(pod)
        if latest(observed, container["name"]) is None
    ]


def _normals(inputs: Inputs, observed: ObservedPod) -> Step:
    """`goes_on`: any of them is, or will be, alive."""
    whole = Step()
    for container in containers(inputs.pod):
        step = _normal(inputs, container, latest(observed, container["name"]))
        whole.add(step)
        whole.goes_on = whole.goes_on or step.goes_on
    return whole


def _normal(inputs: Inputs, container: Obj, last: ContainerStatus | None) -> Step:
    if last is None or last.state is not ContainerState.RUNNING:
        if not should_restart(inputs.pod, container, last):
            return Step()
        return Step(inputs.starts.of(container, Role.NORMAL), goes_on=True)
    probe = inputs.checks.doomed.get(last.id, "")
    if not is_made_of(last, container):
        probe, again = "", True
        why = f"Container {last.name} definition changed"
    elif probe:
        again = restarts_after_kill(inputs.pod, container)
        why = f"Container {last.name} failed {probe} probe"
    else:
        return resized(inputs, container, Role.NORMAL, last)
    kill = ended_by(container, last, f"{why}, will be restarted" if again else why, probe)
    if not again:
        return Step([kill])
    start = inputs.starts.after_kill(container, Role.NORMAL, last)
    return Step([kill, start], goes_on=True)
