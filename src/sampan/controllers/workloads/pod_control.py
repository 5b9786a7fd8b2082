"""What the controllers that own pods have in common: making, claiming, counting and ranking them.

Job: pods from templates, who belongs to whom, who counts as active, available, first to go. Pure.
Invariant: a pod has at most one controller; only its owner's plan changes that reference.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from sampan.api.errors import NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    seconds_of,
    uid_of,
)
from sampan.api.resources import PODS, Resource
from sampan.api.rules import pods
from sampan.api.rules.selectors import LabelSelector
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import Create, Delete, Outcome, Patch, Record
from sampan.core.fast_dataclass import dataclass

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def controller_reference(resource: Resource, owner: Obj) -> Obj:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(template: Obj, owner: Obj, reference: Obj) -> Obj:
    """A pod of `owner`, its name left to the server: `<owner>-xxxxx`. The fields of its spec are
    the template's own, as large as they may be: give a field another value, never change one."""
    meta: Obj = {
        "generateName": f"{name_of(owner)}-",
        "namespace": namespace_of(owner),
        "labels": dict(labels_of(template)),
        "annotations": dict(annotations_of(template)),
        "ownerReferences": [reference],
    }
    if finalizers := meta_of(template).get("finalizers"):
        meta["finalizers"] = list(finalizers)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {field: value for field, value in meta.items() if value},
        "spec": {**(template.get("spec") or {})},
    }


def is_active(pod: Obj) -> bool:
    return not pods.is_terminal(pod) and not is_deleted(pod)


def is_terminating(pod: Obj) -> bool:
    return not pods.is_terminal(pod) and is_deleted(pod)


def ready_since(pod: Obj) -> float | None:
    """When the pod became ready; None while it is not."""
    condition = pods.condition(pod, "Ready")
    if condition is None or condition.get("status") != "True":
        return None
    text = condition.get("lastTransitionTime")
    return seconds_of(text) if text else -math.inf


def available_at(pod: Obj, min_ready_seconds: int) -> float | None:
    """When the pod counts as available, maybe in the future; None while it is not ready."""
    since = ready_since(pod)
    if since is None:
        return None
    return since + min_ready_seconds if min_ready_seconds else -math.inf


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose the objects are after the actions are done."""

    owned: Sequence[Obj]
    actions: Sequence[Patch]
    adopted: Sequence[Obj] = ()  # those of the owned that were nobody's


def claim(
    resource: Resource,
    owner: Obj,
    reference: Obj,
    selector: LabelSelector,
    owned: Iterable[Obj],
    orphans: Iterable[Obj],
) -> Claim:
    """Adopt what matches and has no controller; release what is ours and no longer matches."""
    kept: list[Obj] = []
    actions: list[Patch] = []
    for obj in owned:
        if selector.matches(labels_of(obj)):
            kept.append(obj)
        elif not is_deleted(obj):
            actions.append(_release(resource, obj, uid_of(owner)))
    if is_deleted(owner):
        return Claim(kept, actions)
    adopted = [obj for obj in orphans if not is_deleted(obj) and selector.matches(labels_of(obj))]
    actions += [_adopt(resource, obj, reference) for obj in adopted]
    return Claim([*kept, *adopted], actions, adopted)


def adopts_any(selector: LabelSelector, orphans: Iterable[Obj]) -> bool:
    return any(not is_deleted(orphan) and selector.matches(labels_of(orphan)) for orphan in orphans)


def _adopt(resource: Resource, obj: Obj, reference: Obj) -> Patch:
    references = [*(meta_of(obj).get("ownerReferences") or ()), reference]
    return _references_patch(resource, obj, references)


def _release(resource: Resource, obj: Obj, owner_uid: str) -> Patch:
    references = meta_of(obj).get("ownerReferences") or ()
    return _references_patch(
        resource, obj, [reference for reference in references if reference["uid"] != owner_uid]
    )


def _references_patch(resource: Resource, obj: Obj, references: Sequence[Obj]) -> Patch:
    meta = meta_of(obj)
    patch = {
        "metadata": {
            "uid": meta.get("uid"),
            "resourceVersion": meta.get("resourceVersion"),
            "ownerReferences": list(references),
        }
    }
    return Patch(resource, namespace_of(obj), name_of(obj), patch, settled=(NotFound,))


def pod_events(owner: Obj, outcomes: Sequence[Outcome]) -> list[Record]:
    """What upstream's pod control tells about each creation and deletion of a pod."""
    about = reference_to(owner)
    events: list[Record] = []
    for outcome in outcomes:
        action = outcome.action
        if not isinstance(action, Create | Delete) or action.resource != PODS:
            continue
        creates = isinstance(action, Create)
        verb = "Create" if creates else "Delete"
        if outcome.error is not None:
            message = f"Error {'creating' if creates else 'deleting'}: {outcome.error.message}"
            events.append(Record(about, "Warning", f"Failed{verb}", message))
            continue
        name = action.name if isinstance(action, Delete) else name_of(outcome.result or {})
        if name:  # nothing came of a creation in a namespace that is going away
            events.append(Record(about, "Normal", f"Successful{verb}", f"{verb}d pod: {name}"))
    return events


def first_to_go(
    candidates: Sequence[Obj], count: int, neighbours: Mapping[str, int], now: float
) -> list[Obj]:
    """The `count` pods whose loss hurts least, as upstream's ActivePodsWithRanks. `neighbours`:
    how many related active pods each node has; where there are many, one is missed less."""
    if count >= len(candidates):
        return list(candidates)
    return sorted(candidates, key=_rank(neighbours, now))[:count]


_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def phase_rank(pod: Obj) -> int:
    """Those that have got least far are missed least."""
    return _PHASES.get(pods.phase(pod), 0)


def _rank(neighbours: Mapping[str, int], now: float) -> Callable[[Obj], tuple[float, ...]]:
    def rank(pod: Obj) -> tuple[float, ...]:
        since = ready_since(pod)
        created = meta_of(pod).get("creationTimestamp")
        node = pods.node_name(pod)
        return (
            0 if not node else 1,
            phase_rank(pod),
            0 if since is None else 1,
            _deletion_cost(pod),
            -neighbours.get(node, 0),
            _age_bucket(since, now),
            -most_restarts(pod),
            _age_bucket(seconds_of(created) if created else None, now),
        )

    return rank


def _age_bucket(since: float | None, now: float) -> float:
    """Ages that differ by less than a factor of two count as equal: a hint of chance is enough."""
    if since is None or since == -math.inf:
        return -1.0
    return math.floor(math.log2(max(now - since, 1.0)))


def _deletion_cost(pod: Obj) -> int:
    text = annotations_of(pod).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def most_restarts(pod: Obj) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(status.get("restartCount") or 0) for status in statuses), default=0)


def finished_at(pod: Obj) -> float:
    """When the last container ended; else since when it is not ready, when its deletion was asked
    for, or when it was made."""
    ends = _container_ends(pod)
    if ends is not None:
        return ends
    ready = pods.condition(pod, "Ready") or {}
    if ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return seconds_of(ready["lastTransitionTime"])
    deleted = meta_of(pod).get("deletionTimestamp")
    if deleted:
        return seconds_of(deleted) - float(meta_of(pod).get("deletionGracePeriodSeconds") or 0)
    created = meta_of(pod).get("creationTimestamp")
    return seconds_of(created) if created else -math.inf


def _container_ends(pod: Obj) -> float | None:
    """None unless every container, sidecars among them, says when it ended."""
    ends = [
        (item.get("state") or {}).get("terminated", {}).get("finishedAt")
        for item in _lasting_statuses(pod)
    ]
    return max(map(seconds_of, ends)) if ends and all(ends) else None


def _lasting_statuses(pod: Obj) -> Iterable[Obj]:
    status = pod.get("status") or {}
    yield from status.get("containerStatuses") or ()
    sidecars = {
        container["name"] for container in pods.init_containers(pod) if pods.is_sidecar(container)
    }
    for item in status.get("initContainerStatuses") or ():
        if item.get("name") in sidecars:
            yield item
