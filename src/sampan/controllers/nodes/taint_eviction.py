"""Pods that may not stay on a node with a NoExecute taint.

Job: delete a pod when no toleration covers such a taint of its node, or when its tolerationSeconds
    are over.
Invariant: the time runs from when the pod's eviction was scheduled, by the first taint that it
    tolerates for a while only, not from what the taint says: after a start again everybody has the
    whole of it, as in the original. A taint that went away takes the eviction with it, and an event
    says so.
"""

import math
from collections.abc import Iterable

from sampan.api.errors import NotFound
from sampan.api.objects import (
    Obj,
    is_deleted,
    key_of,
    name_of,
    namespace_of,
    time_text,
    uid_of,
)
from sampan.api.resources import NODES, PODS
from sampan.api.rules.aspects import DELETION, EXISTENCE, NODE, SPEC, looks_at
from sampan.api.rules.conditions import is_true
from sampan.api.rules.nodes import taints_of
from sampan.api.rules.tolerations import taint_of, toleration_of
from sampan.client.indexer import by_node_name
from sampan.controllers.actions import NOTHING, Action, Patch, Plan, Record, deletion
from sampan.controllers.controller import Caches, Controller, View

NODE_INDEX = "node"


def taint_eviction_controller() -> Controller:
    scheduled = ScheduledEvictions()

    async def planned(view: View, key: str) -> Plan:
        pod = view.cache(PODS).get(key)
        if pod is None or is_deleted(pod):
            # As upstream: also of a pod that is gone it tells that it needs no eviction.
            return scheduled.cancelled(key) if pod is None else NOTHING
        node = view.cache(NODES).get(pod["spec"].get("nodeName", ""))
        if node is None:
            return scheduled.when_due(pod, view.now)
        return scheduled.plan(pod, node, view.now)

    return Controller(
        name="taint-eviction-controller",
        component="taint-eviction-controller",
        wakes={PODS: _pod_on_a_node, NODES: _taints_changed},
        indices={PODS: {NODE_INDEX: by_node_name}},
        planned=planned,
        workers=8,
    )


class ScheduledEvictions:
    """When each pod that tolerates its node's taints for a while has to go."""

    def __init__(self) -> None:
        self._due: dict[str, tuple[str, float]] = {}  # by key: uid, moment

    def plan(self, pod: Obj, node: Obj, now: float) -> Plan:
        seconds = tolerated_seconds(pod, node)
        if seconds == math.inf:
            return self.cancelled(key_of(pod))
        if seconds <= 0 and not self._is_scheduled(pod):
            return Plan(eviction(pod, now))
        if seconds < 0:
            # It goes at once, not when it was to go.
            return Plan([*self.cancelled(key_of(pod)).actions, *eviction(pod, now)])
        if not self._is_scheduled(pod):
            self._due[key_of(pod)] = (uid_of(pod), now + seconds)
        return self.when_due(pod, now)

    def when_due(self, pod: Obj, now: float) -> Plan:
        """As it was scheduled, whatever has become of the node since."""
        if not self._is_scheduled(pod):
            return NOTHING
        _, due = self._due[key_of(pod)]
        if due > now:
            return Plan(again_seconds=due - now)
        del self._due[key_of(pod)]
        return Plan(eviction(pod, now))

    def cancelled(self, key: str) -> Plan:
        if self._due.pop(key, None) is None:
            return NOTHING
        message = f"Cancelling deletion of Pod {key}"
        return Plan([Record(_reference(key), "Normal", "TaintManagerEviction", message)])

    def _is_scheduled(self, pod: Obj) -> bool:
        return self._due.get(key_of(pod), ("", 0.0))[0] == uid_of(pod)


def tolerated_seconds(pod: Obj, node: Obj) -> float:
    """How long the pod may stay with the node's taints; infinity: for ever; below 0: not at all."""
    tolerations = (pod.get("spec") or {}).get("tolerations") or ()
    shortest = math.inf
    for taint in taints_of(node):
        if taint.get("effect") != "NoExecute":
            continue
        kept_off = taint_of(taint)
        covering = next((t for t in tolerations if toleration_of(t).tolerates(kept_off)), None)
        if covering is None:
            return -1.0
        seconds = covering.get("tolerationSeconds")
        if seconds is not None:
            shortest = min(shortest, float(max(seconds, 0)))
    return shortest


def eviction(pod: Obj, now: float) -> list[Action]:
    message = f"Marking for deletion Pod {key_of(pod)}"
    actions: list[Action] = [
        Record(_reference(key_of(pod)), "Normal", "TaintManagerEviction", message)
    ]
    if not is_true(pod, "DisruptionTarget"):
        actions.append(_disruption_target(pod, now))
    return [*actions, deletion(PODS, pod, propagation=None)]


def _reference(key: str) -> Obj:
    """By name alone, as upstream: of a pod that may be gone."""
    namespace, _, name = key.partition("/")
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "namespace": namespace}


def _disruption_target(pod: Obj, now: float) -> Patch:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": time_text(now),
    }
    patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}}
    return Patch(
        PODS, namespace_of(pod), name_of(pod), patch,
        patch_type="strategic", subresource="status", settled=(NotFound,),
    )  # fmt: skip


@looks_at(EXISTENCE | NODE | SPEC | DELETION)
def _pod_on_a_node(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    pod = new or old or {}
    for name in by_node_name(pod):
        node = caches(NODES).get(name)
        if node is not None and _no_execute(node):
            return (key_of(pod),)
    return ()


def _taints_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    nodes = [node for node in (old, new) if node is not None]
    if not any(map(_no_execute, nodes)):
        return ()
    if old is not None and new is not None and taints_of(old) == taints_of(new):
        return ()
    return [key_of(pod) for pod in caches(PODS).by(NODE_INDEX, name_of(nodes[0]))]


def _no_execute(node: Obj) -> bool:
    return any(taint.get("effect") == "NoExecute" for taint in taints_of(node))
