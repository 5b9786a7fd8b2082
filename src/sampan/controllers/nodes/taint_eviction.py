"""Pods that may not stay on a node with a NoExecute taint.

Job: delete a pod when no toleration covers such a taint of its node, or when its tolerationSeconds
    are over.
Invariant: the time runs from when the taint was added; a taint that went away takes the sentence
    with it.
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
    seconds_of,
    time_text,
    uid_of,
)
from sampan.api.resources import NODES, PODS
from sampan.api.rules.conditions import is_true
from sampan.api.rules.nodes import taints_of
from sampan.api.rules.tolerations import taint_of, toleration_of
from sampan.client.events import reference
from sampan.client.indexer import by_node_name
from sampan.controllers.actions import NOTHING, Action, Patch, Plan, Record, deletion
from sampan.controllers.controller import Caches, Controller, View

NODE_INDEX = "node"


def taint_eviction_controller() -> Controller:
    return Controller(
        name="taint-eviction-controller",
        component="taint-eviction-controller",
        wakes={PODS: _pod_on_a_node, NODES: _taints_changed},
        indices={PODS: {NODE_INDEX: by_node_name}},
        planned=_plan_key,
        workers=8,
    )


def plan(pod: Obj, node: Obj, now: float) -> Plan:
    if is_deleted(pod):
        return NOTHING
    end = stay_until(pod, node, now)
    if end > now:
        return NOTHING if end == math.inf else Plan(again_seconds=end - now)
    message = f"Marking for deletion Pod {key_of(pod)}"
    actions: list[Action] = [Record(reference(pod), "Normal", "TaintManagerEviction", message)]
    if not is_true(pod, "DisruptionTarget"):
        actions.append(_disruption_target(pod, now))
    return Plan([*actions, deletion(PODS, pod, propagation=None)])


def stay_until(pod: Obj, node: Obj, now: float) -> float:
    """When the pod has to go: at once (`now`), later, or never (infinity)."""
    tolerations = (pod.get("spec") or {}).get("tolerations") or ()
    end = math.inf
    for taint in taints_of(node):
        if taint.get("effect") != "NoExecute":
            continue
        covering = [
            toleration
            for toleration in tolerations
            if toleration_of(toleration).tolerates(taint_of(taint))
        ]
        if not covering:
            return now
        limits = [s for item in covering if (s := item.get("tolerationSeconds")) is not None]
        if limits:
            added = seconds_of(taint["timeAdded"]) if taint.get("timeAdded") else now
            end = min(end, added + max(min(limits), 0))
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


async def _plan_key(view: View, key: str) -> Plan:
    pod = view.cache(PODS).get(key)
    node = view.cache(NODES).get(pod["spec"].get("nodeName", "")) if pod is not None else None
    return NOTHING if pod is None or node is None else plan(pod, node, view.now)


def _pod_on_a_node(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    if new is None:
        return ()
    for name in by_node_name(new):
        node = caches(NODES).get(name)
        if node is not None and _no_execute(node):
            return (key_of(new),)
    return ()


def _taints_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    if new is None or not _no_execute(new):
        return ()
    if old is not None and taints_of(old) == taints_of(new):
        return ()
    return [key_of(pod) for pod in caches(PODS).by(NODE_INDEX, name_of(new))]


def _no_execute(node: Obj) -> bool:
    return any(taint.get("effect") == "NoExecute" for taint in taints_of(node))
