"""Pod garbage collection: pods that no kubelet will ever finish.

Job: delete pods of nodes that are gone, pods that end without ever having had a node, and the
    oldest of the finished ones where there are too many.
Invariant: a pod's node counts as gone only after a quarantine, and when the server says so.
Invariant: a pod that is removed here has a terminal phase first, so that its owner can count it.
"""

from collections.abc import Iterable, Sequence

from sampan.api.errors import NotFound
from sampan.api.objects import Obj, is_deleted, key_of, meta_of, name_of, namespace_of, uid_of
from sampan.api.resources import NODES, PODS
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import CAME, DELETION, NODE, PHASE, looks_at
from sampan.api.rules.conditions import with_condition
from sampan.api.rules.nodes import is_ready, taints_of
from sampan.client.indexer import by_node_name
from sampan.controllers.actions import NOTHING, Action, Patch, Plan, deletion
from sampan.controllers.controller import Caches, Controller, View
from sampan.core.fast_dataclass import dataclass

QUARANTINE_SECONDS = 40.0
MOST_FINISHED = 12500  # as upstream's terminated-pod-gc-threshold
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
FINISHED = ""  # the key under which finished pods are counted; no pod has it


@dataclass(frozen=True, slots=True)
class Situation:
    pod: Obj
    node: Obj | None
    missing_seconds: float = 0.0  # how long its node has been missing; 0 where it is there
    confirmed_missing: bool = False  # the server said so


def pod_gc_controller() -> Controller:
    missing_since: dict[str, float] = {}

    async def planned(view: View, key: str) -> Plan:
        if key == FINISHED:
            return plan_finished(view.cache(PODS).by("finished", "yes"), MOST_FINISHED)
        pod = view.cache(PODS).get(key)
        if pod is None:
            return NOTHING
        name = pod_facts.node_name(pod)
        node = view.cache(NODES).get(name) if name else None
        if not name or node is not None:
            missing_since.pop(name, None)
            return plan(Situation(pod, node), view.now)
        silent = view.now - missing_since.setdefault(name, view.now)
        gone = silent >= QUARANTINE_SECONDS and await _is_gone(view, name)
        return plan(Situation(pod, None, silent, gone), view.now)

    return Controller(
        name="pod-garbage-collector-controller",
        component="pod-garbage-collector-controller",
        aliases=("podgc",),
        wakes={NODES: _pods_of_node, PODS: _suspicious},
        planned=planned,
        indices={PODS: {"node": by_node_name, "finished": _by_finished}},
        workers=2,
    )


def plan(situation: Situation, now: float) -> Plan:
    pod, node = situation.pod, situation.node
    name = pod_facts.node_name(pod)
    if not name:
        return Plan(_removal(pod)) if is_deleted(pod) else NOTHING
    if node is not None:
        if not is_deleted(pod) or is_ready(node) or not _is_out_of_service(node):
            return NOTHING
        return Plan(_removal(pod))
    if not situation.confirmed_missing:
        left = QUARANTINE_SECONDS - situation.missing_seconds
        return Plan(again_seconds=max(left, 1.0))
    disruption = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
    }
    return Plan(_removal(pod, with_condition([], disruption, now)))


def plan_finished(finished: Sequence[Obj], most: int) -> Plan:
    surplus = len(finished) - most
    if surplus <= 0:
        return NOTHING
    ordered = sorted(finished, key=_order_of_removal)
    return Plan([deletion(PODS, pod, grace_seconds=0) for pod in ordered[:surplus]])


def _order_of_removal(pod: Obj) -> tuple[bool, str, str]:
    """Evicted ones first, then by age."""
    evicted = (pod.get("status") or {}).get("reason") == "Evicted"
    return not evicted, meta_of(pod).get("creationTimestamp") or "", name_of(pod)


def _removal(pod: Obj, conditions: Sequence[Obj] = ()) -> list[Action]:
    """Failed first, where it has not finished (others wait for its end), then gone without grace:
    nobody is there to wait."""
    actions: list[Action] = []
    if not pod_facts.is_terminal(pod):
        status: Obj = {"phase": "Failed"}
        if conditions:
            status["conditions"] = list(conditions)
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        namespace, name = namespace_of(pod), name_of(pod)
        actions.append(
            Patch(PODS, namespace, name, patch, "strategic", "status", settled=(NotFound,))
        )
    return [*actions, deletion(PODS, pod, grace_seconds=0)]


async def _is_gone(view: View, name: str) -> bool:
    try:
        await view.client.get(NODES, "", name)
    except NotFound:
        return True
    return False


def _is_out_of_service(node: Obj) -> bool:
    return any(taint.get("key") == OUT_OF_SERVICE for taint in taints_of(node))


@looks_at(PHASE | DELETION)
def _by_finished(pod: Obj) -> Iterable[str]:
    return ("yes",) if pod_facts.is_terminal(pod) and not is_deleted(pod) else ()


def _pods_of_node(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """The node went away, or was declared out of service."""
    node = new if new is not None else old
    if node is None or (new is not None and not _is_out_of_service(new)):
        return ()
    return [key_of(pod) for pod in caches(PODS).by("node", name_of(node))]


@looks_at(CAME | NODE | DELETION | PHASE)
def _suspicious(caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[str]:
    if new is None:
        return ()
    keys = [key_of(new)] if _needs_a_look(caches, new) else []
    if pod_facts.is_terminal(new) and caches(PODS).count("finished", "yes") > MOST_FINISHED:
        keys.append(FINISHED)
    return keys


def _needs_a_look(caches: Caches, pod: Obj) -> bool:
    name = pod_facts.node_name(pod)
    if not name:
        return is_deleted(pod)
    node = caches(NODES).get(name)
    return node is None or (is_deleted(pod) and _is_out_of_service(node))
