"""The container statuses of a pod's status.

Job: per container of the spec, in its order: state, last state, readiness, restart count. Pure.
Invariant: there is one entry per container of the spec, whatever the runtime has.
Invariant: the restart count never falls.
"""

from collections.abc import Mapping
from typing import Protocol

from sampan.api.objects import Obj, spec_of, time_text
from sampan.api.rules.node_agent.restart_rules import is_on
from sampan.api.rules.pods import containers, ephemeral_containers, init_containers, is_sidecar
from sampan.kubelet.contracts.probes_hook import Checks
from sampan.kubelet.contracts.resize_state import Applied, actual_resources
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ContainerStatus,
    ObservedPod,
    Role,
    RuntimeFeatures,
)
from sampan.kubelet.contracts.spec import (
    instances,
    is_recursive_read_only,
    latest,
    should_restart,
    status_named,
)
from sampan.kubelet.contracts.verdict import Waiting
from sampan.kubelet.status import restart_all_containers


class ContainerFacts(Protocol):
    """The part of status.Facts that matters here."""

    @property
    def runtime_name(self) -> str: ...
    @property
    def waiting(self) -> Mapping[str, Waiting]: ...
    @property
    def checks(self) -> Checks: ...
    @property
    def ending(self) -> bool: ...
    @property
    def applied(self) -> Applied: ...
    @property
    def features(self) -> RuntimeFeatures: ...
    @property
    def restarting(self) -> bool: ...


UNKNOWN: Obj = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
}


def container_statuses(
    pod: Obj, observed: ObservedPod | None, facts: ContainerFacts
) -> tuple[list[Obj], list[Obj]]:
    """(init containers, normal containers)"""
    inits = [
        _one(pod, container, Role.SIDECAR if is_sidecar(container) else Role.INIT, observed, facts)
        for container in init_containers(pod)
    ]
    normals = [_one(pod, container, Role.NORMAL, observed, facts) for container in containers(pod)]
    return inits, normals


def ephemeral_statuses(pod: Obj, observed: ObservedPod | None, facts: ContainerFacts) -> list[Obj]:
    return [
        _one(pod, container, Role.EPHEMERAL, observed, facts)
        for container in ephemeral_containers(pod)
    ]


def _one(
    pod: Obj, container: Obj, role: Role, observed: ObservedPod | None, facts: ContainerFacts
) -> Obj:
    name = container["name"]
    old = _old_status(pod, role, name)
    last = latest(observed, name)
    if last is None and facts.ending and "terminated" in (old.get("state") or {}):
        return old  # its end was reported, and the container has been collected since
    state, last_state = _states(pod, container, role, observed, facts)
    restarts = int(old.get("restartCount") or 0)
    if _was_removed(old, last, role, facts):
        (state, last_state), restarts = restart_all_containers.removed(), restarts + 1
    last_state = _remembered(last_state, old, last, facts)
    if facts.ending and "terminated" not in state:
        state, last_state = _lost_state(state, last_state, old)
    started = "running" in state and _has_started(container, last, facts)
    status: Obj = {
        "name": name,
        "state": state,
        "lastState": last_state,
        "ready": _is_ready(container, role, last, state, started, facts),
        "restartCount": restarts,
        "image": container.get("image", ""),
        "imageID": "",
    }
    if last is not None:
        status |= _instance(pod, container, last, status, facts)
    signal = (container.get("lifecycle") or {}).get("stopSignal")
    if signal:
        status["stopSignal"] = signal
    if role is not Role.EPHEMERAL:
        status["started"] = started
    if container.get("volumeMounts"):
        status["volumeMounts"] = [
            _mounted(mount, facts.features) for mount in container["volumeMounts"]
        ]
    return status


def _mounted(mount: Obj, features: RuntimeFeatures) -> Obj:
    shown: Obj = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        possible = features.of("").recursive_read_only
        is_recursive = is_recursive_read_only(mount, possible=possible)
        shown["readOnly"] = True
        shown["recursiveReadOnly"] = "Enabled" if is_recursive else "Disabled"
    return shown


def _has_started(container: Obj, last: ContainerStatus | None, facts: ContainerFacts) -> bool:
    if last is None:
        return False
    return facts.checks.started.get(last.id, "startupProbe" not in container)


def _instance(
    pod: Obj, container: Obj, last: ContainerStatus, status: Obj, facts: ContainerFacts
) -> Obj:
    """What the newest container of that name adds."""
    found = {
        "restartCount": max(last.attempt, status["restartCount"]),
        "image": last.image or status["image"],
        "imageID": last.image_id,
    }
    if last.state is not ContainerState.CREATED:
        found["containerID"] = f"{facts.runtime_name}://{last.id}"
    if last.user is not None:
        user: Obj = {"uid": last.user.uid, "gid": last.user.gid}
        if last.user.groups:
            user["supplementalGroups"] = list(last.user.groups)
        found["user"] = {"linux": user}
    return found | _resources(pod, container, last, facts.applied)


def _resources(pod: Obj, container: Obj, last: ContainerStatus, applied: Applied) -> Obj:
    """Of every container that was made, running or not; empty where it asks for nothing."""
    given = container.get("resources") or {}
    shown: Obj = {"allocatedResources": given["requests"]} if given.get("requests") else {}
    runs = last.state is ContainerState.RUNNING
    has = actual_resources(last, applied) if runs else {}
    # As upstream: one with limits of its own that runs shows those of its pod, too.
    whole: Obj = (spec_of(pod).get("resources") or {}).get("limits") or {} if runs else {}
    held = {name: whole[name] for name in ("cpu", "memory") if name in whole}
    shown["resources"] = {
        kind: {**(held if kind == "limits" else {}), **given[kind], **(has.get(kind) or {})}
        for kind in ("limits", "requests")
        if given.get(kind)
    }
    return shown


def with_ends(inits: list[Obj], normals: list[Obj], pod: Obj) -> tuple[list[Obj], list[Obj]]:
    """The pod is over: as upstream's TerminatePod, whatever was begun and shows no end gets one.
    `pod`: as its node last read it, before it was ended."""
    begun = [n for n, init in enumerate(inits) if _was_begun(init)]
    inits = [
        _wait_for_end(init) if n <= max(begun, default=0) else init for n, init in enumerate(inits)
    ]
    if not _was_initialized(pod):
        return inits, normals
    return inits, [_wait_for_end(normal) for normal in normals]


def _was_initialized(pod: Obj) -> bool:
    """As upstream's hasPodInitialized."""
    if not init_containers(pod):
        return True
    status: Obj = pod.get("status") or {}
    if any(_was_begun(normal) for normal in status.get("containerStatuses") or ()):
        return True
    inits = status.get("initContainerStatuses")
    if not inits:
        return False
    last = inits[-1]
    if is_sidecar(init_containers(pod)[-1]):
        return "running" in last["state"] and bool(last.get("started"))
    return any(
        (last.get(key) or {}).get("terminated", {}).get("exitCode") == 0
        for key in ("state", "lastState")
    )


def _was_begun(status: Obj) -> bool:
    return "waiting" not in status["state"] or "terminated" in (status.get("lastState") or {})


def _wait_for_end(status: Obj) -> Obj:
    if "terminated" in status["state"]:
        return status
    return {**status, "state": {"terminated": dict(UNKNOWN)}, "ready": False}


def _old_status(pod: Obj, role: Role, name: str) -> Obj:
    lists = {Role.NORMAL: "containerStatuses", Role.EPHEMERAL: "ephemeralContainerStatuses"}
    listed = (pod.get("status") or {}).get(lists.get(role, "initContainerStatuses"))
    return status_named(listed, name)


def _states(
    pod: Obj, container: Obj, role: Role, observed: ObservedPod | None, facts: ContainerFacts
) -> tuple[Obj, Obj]:
    """(state, lastState)"""
    mine = instances(observed, container["name"])
    ended = [item for item in mine if item.state is ContainerState.EXITED]
    newest = mine[0] if mine else None
    if newest is None or newest.state is ContainerState.CREATED:
        return {"waiting": _why(pod, container, facts)}, _end_of(ended, facts)
    if newest.state is ContainerState.RUNNING:
        state: Obj = {"running": {"startedAt": time_text(newest.started_at)}}
        return state, _end_of(ended, facts)
    if newest.state is ContainerState.UNKNOWN:
        return {"terminated": dict(UNKNOWN)}, {}
    state = {"terminated": _terminated_state(newest, facts)}
    waits = facts.waiting.get(container["name"])
    if waits is not None and not facts.ending and _starts_again(pod, container, role, newest):
        return {"waiting": _waiting(waits)}, state
    return state, _end_of(ended[1:], facts)


def _was_removed(old: Obj, last: ContainerStatus | None, role: Role, facts: ContainerFacts) -> bool:
    """To be restarted with all others; who waited goes on waiting for what it did."""
    begun = bool(old) and "waiting" not in (old.get("state") or {})
    return last is None and facts.restarting and begun and role is not Role.EPHEMERAL


def _remembered(
    last_state: Obj, old: Obj, last: ContainerStatus | None, facts: ContainerFacts
) -> Obj:
    """The end of the one before, also where the runtime has that no more: where all containers of a
    pod are restarted, they are removed."""
    if last_state:
        return last_state
    before: Obj = old.get("lastState") or {}
    end = (old.get("state") or {}).get("terminated")
    if last is not None and not is_on():
        return {}
    if last is not None and end and old.get("containerID") != f"{facts.runtime_name}://{last.id}":
        before = {"terminated": end}
    return before if "terminated" in before else {}


def _end_of(ended: list[ContainerStatus], facts: ContainerFacts) -> Obj:
    """As a lastState: how the newest of them ended."""
    return {"terminated": _terminated_state(ended[0], facts)} if ended else {}


def _starts_again(pod: Obj, container: Obj, role: Role, ended: ContainerStatus) -> bool:
    if role is Role.INIT and ended.exit_code == 0:
        return False
    # As upstream, of ephemeral containers too: those that could not be started wait, for nothing.
    return should_restart(pod, container, ended)


def _why(pod: Obj, container: Obj, facts: ContainerFacts) -> Obj:
    waits = facts.waiting.get(container["name"])
    if waits is not None:
        return _waiting(waits)
    # As upstream: a pod with init containers says so on all that have not begun.
    return {"reason": "PodInitializing" if init_containers(pod) else "ContainerCreating"}


def _waiting(waits: Waiting) -> Obj:
    state: Obj = {"reason": waits.reason}
    if waits.message:
        state["message"] = waits.message
    return state


def _terminated_state(ended: ContainerStatus, facts: ContainerFacts) -> Obj:
    state: Obj = {"exitCode": ended.exit_code}
    reason = ended.reason or ("Completed" if ended.exit_code == 0 else "Error")
    state["reason"] = reason
    if ended.message:
        state["message"] = ended.message
    if ended.started_at:
        state["startedAt"] = time_text(ended.started_at)
    if ended.finished_at:
        state["finishedAt"] = time_text(ended.finished_at)
    state["containerID"] = f"{facts.runtime_name}://{ended.id}"
    return state


def _lost_state(state: Obj, last_state: Obj, old: Obj) -> tuple[Obj, Obj]:
    """The pod has ended, but the runtime has no end of this container to show."""
    if "running" in (old.get("state") or {}) or "running" in state:
        return {"terminated": dict(UNKNOWN)}, last_state
    return state, last_state


def _is_ready(
    container: Obj,
    role: Role,
    last: ContainerStatus | None,
    state: Obj,
    started: bool,
    facts: ContainerFacts,
) -> bool:
    if role is Role.INIT:
        return "terminated" in state and state["terminated"]["exitCode"] == 0
    if role is Role.EPHEMERAL or last is None or "running" not in state or not started:
        return False
    return facts.checks.ready.get(last.id, "readinessProbe" not in container)
