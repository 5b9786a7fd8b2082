"""Pods: their strategy.

Job: status at creation, QoS class, field selectors, graceful deletion, binding. Pure.
Invariant: spec.nodeName is set once, by a binding.
"""

from collections.abc import Sequence

from sampan.api import features
from sampan.api.defaults.pod_level import default_late
from sampan.api.errors import conflict
from sampan.api.objects import Obj, annotations_of, copy_of, labels_of, meta_of, name_of
from sampan.api.rules import conditions
from sampan.api.rules.pods import is_terminal
from sampan.api.rules.qos import qos_class
from sampan.apiserver.registry.pod_label_keys import merge_label_keys
from sampan.apiserver.registry.strategy import Strategy, flag_getter, path_getter

DEFAULT_GRACE_SECONDS = 30
TOPOLOGY = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")  # a binding brings them


def prepare_create(pod: Obj) -> None:
    if not (pod.get("status") or {}).get("phase"):  # else another name of the same pod is tried
        merge_label_keys(pod)
    spec = pod.get("spec") or {}
    if spec.get("resources") and features.enabled("PodLevelResourcesFixDefaulting"):
        default_late(spec)
    status = first_status(qos_class(pod))
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastTransitionTime": meta_of(pod)["creationTimestamp"],
            }
        ]
    pod["status"] = status


def first_status(quality: str) -> Obj:
    """Of a pod that nothing keeps from being scheduled."""
    return {"phase": "Pending", "qosClass": quality}


def prepare_update(new: Obj, old: Obj) -> None:
    new["status"] = old.get("status") or {}
    had = (old.get("spec") or {}).get("resources")
    if had is not None and features.enabled("PodLevelResourcesFixDefaulting"):
        # A client that knows nothing of them does not take them away.
        new.setdefault("spec", {}).setdefault("resources", copy_of(had))


def prepare_status(new: Obj, old: Obj) -> None:
    """As podStatusStrategy, the QoS class is never lost, nor of which spec something was said."""
    status, before = new.setdefault("status", {}), old.get("status") or {}
    if not status.get("qosClass"):
        status["qosClass"] = before.get("qosClass") or qos_class(old)
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    conditions = status.get("conditions") or ()
    if not all(condition.get("observedGeneration") for condition in conditions):
        status["conditions"] = _with_generations(conditions, before.get("conditions") or ())


def _with_generations(conditions: Sequence[Obj], before: Sequence[Obj]) -> list[Obj]:
    """Those that say none have that of the one before them; of several of a type in their order."""
    known: dict[str, list[int]] = {}
    for condition in before:
        generation = condition.get("observedGeneration") or 0
        known.setdefault(condition.get("type") or "", []).append(generation)
    found = []
    for condition in conditions:
        of_type = known.get(condition.get("type") or "")
        generation = of_type.pop(0) if of_type else 0
        is_lost = generation and not condition.get("observedGeneration")
        found.append({**condition, "observedGeneration": generation} if is_lost else condition)
    return found


def grace(pod: Obj, asked: int | None) -> int:
    """As podStrategy.CheckGracefulDelete: nothing to wait for where nothing runs."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or is_terminal(pod):
        return 0
    seconds = asked if asked is not None else spec.get("terminationGracePeriodSeconds")
    if seconds is None:
        seconds = DEFAULT_GRACE_SECONDS
    return 1 if seconds < 0 else int(seconds)


def bind(pod: Obj, binding: Obj, now: float) -> Obj:
    """The pod with the node of a Binding. Raises Conflict where it has one, or is going away."""
    name = name_of(pod)
    node = (binding.get("target") or {}).get("name") or ""
    spec, meta = pod.get("spec") or {}, meta_of(pod)
    if spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        raise conflict("pods/binding", "", name, why)
    if meta.get("deletionTimestamp"):
        raise conflict(
            "pods/binding", "", name, f"pod {name} is being deleted, cannot be assigned to a host"
        )
    if spec.get("schedulingGates"):
        raise conflict("pods/binding", "", name, f"pod {name} has non-empty .spec.schedulingGates")
    # What a binding does not change is shared with the pod as it was, which nobody changes.
    changed: Obj = {**meta}
    if annotations_of(binding):
        changed["annotations"] = {**annotations_of(pod), **annotations_of(binding)}
    brought = labels_of(binding)
    if brought:
        changed["labels"] = {**labels_of(pod), **brought}
    status = {**(pod.get("status") or {})}
    status.pop("nominatedNodeName", None)  # else it would be counted on two nodes
    status["conditions"] = _scheduled(status.get("conditions") or [], now)
    return {**pod, "metadata": changed, "spec": {**spec, "nodeName": node}, "status": status}


def _scheduled(listed: list[Obj], now: float) -> list[Obj]:
    old = conditions.find(listed, "PodScheduled")
    new: Obj = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": conditions.transition_time(old, "True", now),
    }
    if old is None:
        return [*listed, new]
    return [new if item is old else item for item in listed]


def _first_ip(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("podIP") or "")


STRATEGY = Strategy(
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=prepare_status,
    keeps_status_on_create=True,  # prepare_create writes its own
    has_generation=True,
    fields={
        "spec.nodeName": path_getter("spec", "nodeName"),
        "spec.restartPolicy": path_getter("spec", "restartPolicy"),
        "spec.schedulerName": path_getter("spec", "schedulerName"),
        "spec.serviceAccountName": path_getter("spec", "serviceAccountName"),
        "spec.hostNetwork": flag_getter("spec", "hostNetwork"),
        "status.phase": path_getter("status", "phase"),
        "status.podIP": _first_ip,
        "status.podIPs": _first_ip,
        "status.nominatedNodeName": path_getter("status", "nominatedNodeName"),
    },
    trigger_fields=("spec.nodeName", "metadata.name"),
    grace=grace,
    returns_deleted=True,
)
