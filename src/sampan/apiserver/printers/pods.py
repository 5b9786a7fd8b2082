"""Table row of a pod: readiness, status word, restarts.

Job: fold container statuses into `READY STATUS RESTARTS`. Pure.
As upstream's printers: the word is the pod's own, unless a container has a more telling one.
"""

from dataclasses import field
from typing import Any

from sampan.api import features
from sampan.api.objects import Obj, is_deleted, name_of, spec_of, status_of
from sampan.api.rules.conditions import condition_of, is_true
from sampan.api.rules.pods import is_sidecar, is_terminal
from sampan.apiserver.printers.layout import (
    AGE,
    NAME,
    NONE,
    Printer,
    age,
    columns,
    containers_and_images,
    labels_text,
    since,
    wide,
)
from sampan.core.fast_dataclass import dataclass

_COMPLETED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


@dataclass(slots=True)
class _Restarts:
    count: int = 0
    last: str = field(default="")  # times of one form compare as text

    def add(self, status: Obj) -> None:
        self.count += status.get("restartCount") or 0
        before = (status.get("lastState") or {}).get("terminated") or {}
        self.last = max(self.last, before.get("finishedAt") or "")

    def text(self, now: float) -> str:
        if self.count and self.last:
            return f"{self.count} ({since(self.last, now)} ago)"
        return str(self.count)


def row_conditions(pod: Obj) -> list[Obj]:
    """Marks rows of finished pods, so that clients can fade or hide them."""
    phase = status_of(pod).get("phase")
    message = _COMPLETED.get(phase or "")
    if message is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def pod_cells(pod: Obj, now: float) -> list[Any]:
    ready, word, restarts = _summary(pod)
    spec, status = spec_of(pod), status_of(pod)
    sidecars = [
        container for container in spec.get("initContainers") or () if is_sidecar(container)
    ]
    total = len(spec.get("containers") or ()) + len(sidecars)
    addresses = status.get("podIPs") or ()
    return [
        name_of(pod), f"{ready}/{total}", word, restarts.text(now), age(pod, now),
        (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]  # fmt: skip


def _summary(pod: Obj) -> tuple[int, str, _Restarts]:
    """(ready containers, the word, restarts)."""
    status = status_of(pod)
    word = status.get("reason") or status.get("phase") or ""
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    ready, init_word, restarts, sidecar_restarts = _initialization(pod)
    if not init_word or is_true(pod, "Initialized"):
        running, main_word, error_word = _main_containers(status, sidecar_restarts)
        ready += running
        word = main_word or init_word or word
        if word == "Completed":
            word = _completed_word(
                error_word, is_running=running > 0, is_ready=is_true(pod, "Ready")
            )
        restarts = sidecar_restarts
    else:
        word = init_word
    return ready, _deleted_word(pod) or word, restarts


def _completed_word(error_word: str, *, is_running: bool, is_ready: bool) -> str:
    """Of a pod whose first container has done its work: what the others do."""
    if is_running and is_ready:
        return "Running"
    if not features.changed("CompletedPodShowsFailure"):
        error_word = ""
    return error_word or ("NotReady" if is_running else "Completed")


def _deleted_word(pod: Obj) -> str:
    status = status_of(pod)
    if not is_deleted(pod):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if is_terminal(pod) else "Terminating"


def _initialization(pod: Obj) -> tuple[int, str, _Restarts, _Restarts]:
    """(ready sidecars, the word while initialising, restarts of all, restarts of sidecars)."""
    init_containers = spec_of(pod).get("initContainers") or ()
    sidecars = {container.get("name") for container in init_containers if is_sidecar(container)}
    restarts, sidecar_restarts, ready = _Restarts(), _Restarts(), 0
    for index, status in enumerate(status_of(pod).get("initContainerStatuses") or ()):
        restarts.add(status)
        stays = status.get("name") in sidecars
        if stays:
            sidecar_restarts.add(status)
        state = status.get("state") or {}
        terminated = state.get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if stays and status.get("started"):
            ready += bool(status.get("ready"))
            continue
        word = _init_word(state, f"{index}/{len(init_containers)}")
        return ready, f"Init:{word}", restarts, sidecar_restarts
    return ready, "", restarts, sidecar_restarts


def _init_word(state: Obj, progress: str) -> str:
    if state.get("terminated") is not None:
        return _termination(state["terminated"])
    waiting = (state.get("waiting") or {}).get("reason") or ""
    return waiting if waiting and waiting != "PodInitializing" else progress


def _main_containers(status: Obj, restarts: _Restarts) -> tuple[int, str, str]:
    """(running and ready ones, the first container's word that is not plain running, the first
    failed one's)."""
    running, word, error_word = 0, "", ""
    for item in reversed(status.get("containerStatuses") or ()):
        restarts.add(item)
        state = item.get("state") or {}
        waiting = (state.get("waiting") or {}).get("reason")
        if waiting:
            word = waiting
        elif state.get("terminated") is not None:
            word = _termination(state["terminated"])
            if state["terminated"].get("exitCode"):
                error_word = word
        elif item.get("ready") and state.get("running") is not None:
            running += 1
    return running, word, error_word


def _termination(terminated: Obj) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _readiness_gates(pod: Obj) -> str:
    gates = spec_of(pod).get("readinessGates") or ()
    if not gates:
        return NONE
    true = sum(is_true(pod, gate.get("conditionType") or "") for gate in gates)
    return f"{true}/{len(gates)}"


def _template_cells(obj: Obj, now: float) -> list[Any]:
    template = obj.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    named = containers_and_images(template.get("spec") or {})
    return [name_of(obj), *named, labels_text(labels)]


PODS = Printer(
    (*columns(NAME, "Ready", "Status", "Restarts", AGE),
     *wide("IP", "Node", "Nominated Node", "Readiness Gates")),
    pod_cells,
)  # fmt: skip
POD_TEMPLATES = Printer(columns(NAME, "Containers", "Images", "Pod Labels"), _template_cells)
