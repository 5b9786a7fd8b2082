"""Initialization of a pod: which of its init containers and sidecars come next. Pure.

Job: the init containers of a pod, what its sandbox has of them → what to do, and whether the
    normal containers may run. Pure.
Invariant: init containers run one after the other; as upstream, the last of them that was ever
    begun says how far it is: what comes before it has been initialized once, and that is enough.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj
from sampan.api.rules.pods import containers, init_containers, is_sidecar
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, ObservedPod, Role
from sampan.kubelet.contracts.spec import (
    is_made_of,
    latest,
    resizable,
    restarts_after_kill,
    should_restart,
)
from sampan.kubelet.pods.planning.steps import Inputs, Step, ended_by, resized


def initialization(inputs: Inputs, here: ObservedPod) -> Step:
    """`here`: the pod as its newest sandbox has it. `goes_on`: the normal containers may run."""
    inits = init_containers(inputs.pod)
    at = _reached(inputs.pod, inits, here)
    whole = Step(goes_on=at == len(inits))
    for container in inits[: max(at, 0)]:
        if is_sidecar(container):
            whole.add(_sidecar(inputs, container, latest(here, container["name"])))
    if at < 0:
        whole.add(_started(inputs, inits[0]))
    elif at < len(inits):
        step = _newest(inputs, inits[at], latest(here, inits[at]["name"]))
        if step.failed:
            return step
        whole.add(step)
        if step.goes_on and at + 1 < len(inits):
            whole.add(_started(inputs, inits[at + 1]))
        else:
            whole.goes_on = step.goes_on
    return whole


def _reached(pod: Obj, inits: Sequence[Obj], here: ObservedPod) -> int:
    """The number of the last that was begun; -1: none was; their count: it is over."""
    if _is_over(pod, here):
        return len(inits)
    begun = [n for n, container in enumerate(inits) if latest(here, container["name"])]
    return begun[-1] if begun else -1


def _is_over(pod: Obj, here: ObservedPod) -> bool:
    """There is nothing to begin with, or a normal container was begun: the init containers are
    behind us, even where the garbage collector took them. A normal one that has ended says so only
    where it took all of them."""
    if not init_containers(pod):
        return True
    normals = [latest(here, container["name"]) for container in containers(pod)]
    begun = (ContainerState.CREATED, ContainerState.RUNNING)
    if any(normal is not None and normal.state in begun for normal in normals):
        return True
    inits = [latest(here, container["name"]) for container in init_containers(pod)]
    return any(normals) and not any(inits)


def _started(inputs: Inputs, container: Obj) -> Step:
    role = Role.SIDECAR if is_sidecar(container) else Role.INIT
    return Step(inputs.starts.of(container, role))


def _newest(inputs: Inputs, container: Obj, last: ContainerStatus | None) -> Step:
    """Of the last that was begun."""
    assert last is not None, container
    if is_sidecar(container):
        return _sidecar(inputs, container, last)
    match last.state:
        case ContainerState.RUNNING:
            return _running(inputs, container, last)
        case ContainerState.EXITED if last.exit_code == 0:
            return Step(goes_on=True)
        case ContainerState.UNKNOWN:
            again = restarts_after_kill(inputs.pod, container)
        case _:
            again = should_restart(inputs.pod, container, last)
    return _started(inputs, container) if again else Step(failed=True)


def _running(inputs: Inputs, container: Obj, last: ContainerStatus) -> Step:
    if container not in resizable(inputs.pod):
        return Step()
    step = resized(inputs, container, Role.INIT, last)
    step.goes_on = False  # the next one waits for its end
    return step


def _sidecar(inputs: Inputs, container: Obj, last: ContainerStatus | None) -> Step:
    if last is None or last.state is not ContainerState.RUNNING:
        return _started(inputs, container)
    probe = inputs.checks.doomed.get(last.id, "")
    if not inputs.checks.started.get(last.id, "startupProbe" not in container):
        return (
            _restart(inputs, container, last, f"failed {probe} probe", probe) if probe else Step()
        )
    if not is_made_of(last, container):
        step = _restart(inputs, container, last, "definition changed")
    elif probe:
        step = _restart(inputs, container, last, f"failed {probe} probe", probe)
    else:
        step = resized(inputs, container, Role.SIDECAR, last)
    step.goes_on = True
    return step


def _restart(
    inputs: Inputs, container: Obj, last: ContainerStatus, why: str, probe: str = ""
) -> Step:
    kill = ended_by(container, last, f"Init container {last.name} {why}", probe)
    return Step([kill, inputs.starts.after_kill(container, Role.SIDECAR, last)])
