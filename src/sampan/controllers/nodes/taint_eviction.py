"""Pods that may not stay on a node with a NoExecute taint.

Job: delete a pod when no toleration covers such a taint of its node, or when its tolerationSeconds
    are over.
Invariant: the time runs from when the pod was first seen on a node with such a taint, not from
    what the taint says: after a start again everybody has the whole of it, as in the original. A
    taint that went away takes the sentence with it.
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
from sampan.client.events import reference
from sampan.client.indexer import by_node_name
from sampan.controllers.actions import NOTHING, Action, Patch, Plan, Record, deletion
from sampan.controllers.controller import Caches, Controller, View

NODE_INDEX = "node"


def taint_eviction_controller() -> Controller:
    sentences = Sentences()

    async def planned(view: View, key: str) -> Plan:
        pod = view.cache(PODS).get(key)
        node = view.cache(NODES).get(pod["spec"].get("nodeName", "")) if pod is not None else None
        if pod is None or node is None or not _no_execute(node):
            sentences.forget(key)
            return NOTHING
        return plan(pod, node, view.now, sentences.began(key, uid_of(pod), view.now))

    return Controller(
        name="taint-eviction-controller",
        component="taint-eviction-controller",
        wakes={PODS: _pod_on_a_node, NODES: _taints_changed},
        indices={PODS: {NODE_INDEX: by_node_name}},
        planned=planned,
        workers=8,
    )


class Sentences:
    """Since when each pod has been seen on a node with such a taint."""

    def __init__(self) -> None:
        self._began: dict[str, tuple[str, float]] = {}  # by key: uid, moment

    def began(self, key: str, uid: str, now: float) -> float:
        known = self._began.get(key)
        if known is None or known[0] != uid:
            known = self._began[key] = (uid, now)
        return known[1]

    def forget(self, key: str) -> None:
        self._began.pop(key, None)


def plan(pod: Obj, node: Obj, now: float, seen_at: float) -> Plan:
    """`seen_at`: when the pod was first seen on the node with its taint."""
    if is_deleted(pod):
        return NOTHING
    end = stay_until(pod, node, now, seen_at)
    if end > now:
        return NOTHING if end == math.inf else Plan(again_seconds=end - now)
    message = f"Marking for deletion Pod {key_of(pod)}"
    actions: list[Action] = [Record(reference(pod), "Normal", "TaintManagerEviction", message)]
    if not is_true(pod, "DisruptionTarget"):
        actions.append(_disruption_target(pod, now))
    return Plan([*actions, deletion(PODS, pod, propagation=None)])


def stay_until(pod: Obj, node: Obj, now: float, seen_at: float) -> float:
    """When the pod has to go: at once (`now`), later, or never (infinity)."""
    tolerations = (pod.get("spec") or {}).get("tolerations") or ()
    end = math.inf
    for taint in taints_of(node):
        if taint.get("effect") != "NoExecute":
            continue
        kept_off = taint_of(taint)
        covering = next((t for t in tolerations if toleration_of(t).tolerates(kept_off)), None)
        if covering is None:
            return now
        seconds = covering.get("tolerationSeconds")
        if seconds is not None:
            end = min(end, seen_at + max(seconds, 0))
    return max(end, now)


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
