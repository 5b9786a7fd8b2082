"""AllContainersRestarting: how the status tells that a rule restarts all containers. Pure.

Job: whether that is under way, the condition that says so, and what is told of containers that were
    removed for it.
Invariant: once told, it is under way until no container is left: then they begin anew.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj, spec_of
from sampan.api.rules.conditions import is_true
from sampan.api.rules.node_agent.restart_rules import is_on, may_restart_all, restarts_all_at
from sampan.api.rules.pods import TERMINAL_PHASES, containers, init_containers
from sampan.kubelet.contracts.runtime import ContainerState, ObservedPod
from sampan.kubelet.contracts.spec import latest, status_named

CONDITION = "AllContainersRestarting"
REASON = "RestartingAllContainers"  # of a container that was removed for it
_MESSAGE = "The container is removed because RestartAllContainers in place"
_ENDS = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}


def is_restarting(pod: Obj, observed: ObservedPod | None) -> bool:
    """`pod` shows the status that was told last."""
    if not may_restart_all(spec_of(pod)):
        return False
    return is_true(pod, CONDITION) or any(
        restarts_all_at(container, code)
        for container in _all(pod)
        for code in _exit_codes(pod, container, observed)
    )


def is_under_way(status: Obj) -> bool:
    """By a status that was just made."""
    return is_true({"status": status}, CONDITION)


def _all(pod: Obj) -> Iterator[Obj]:
    yield from init_containers(pod)
    yield from containers(pod)


def _exit_codes(pod: Obj, container: Obj, observed: ObservedPod | None) -> Iterator[int]:
    """Of the container as it is; where that has ended, as it was told, too."""
    last = latest(observed, container["name"])
    if last is None or last.state is not ContainerState.EXITED:
        return
    yield last.exit_code
    status = pod.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        told = status_named(status.get(kind), container["name"])
        if end := (told.get("state") or {}).get("terminated"):
            yield int(end["exitCode"])


def condition(pod: Obj, observed: ObservedPod | None, phase: str) -> list[Obj]:
    """Only pods that may come to it have one."""
    if not may_restart_all(spec_of(pod)):
        return []
    told: Obj = {"type": CONDITION, "status": "False"}
    if phase in TERMINAL_PHASES:
        return [told | {"reason": _ENDS[phase]}]
    left = any(latest(observed, container["name"]) for container in _all(pod))
    if not (left and is_restarting(pod, observed)):
        return [told]
    return [{
        "type": CONDITION, "status": "True", "reason": "RestartAllContainersStarted",
        "message": "container exited with restart policy rule",
    }]  # fmt: skip


def removed() -> tuple[Obj, Obj]:
    """(state, lastState) of a container that was removed for it."""
    told = {"reason": REASON, "message": _MESSAGE}
    return {"waiting": told}, {"terminated": {"exitCode": 137, **told}}


def was_removed(end: Obj) -> bool:
    """Of a `terminated`: it comes back, whatever its policy says."""
    return end.get("reason") == REASON and is_on()
