"""Pods and nodes of a live cluster as files of the lab. Pure.

Job: what the API shows → a Workload and Nodes that `sampan lab run` reads.
Invariant: what decides where a pod goes is kept (requests, selectors, affinity, tolerations,
    priority); what it is and does there (volumes, environment, accounts) is not.
"""

from collections.abc import Iterable, Sequence

import orjson

from sampan.api.objects import Obj, labels_of, meta_of, name_of, namespace_of, seconds_of
from sampan.api.rules import pods as pod_rules
from sampan.cmd.lab import workload
from sampan.kubelet.simulated import node_types

_KEPT = (
    "nodeSelector", "affinity", "topologySpreadConstraints", "priorityClassName", "schedulerName",
    "hostNetwork", "overhead", "schedulingGates",
)  # fmt: skip
_ADDED_TOLERATIONS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_OWN_LABELS = (
    "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)  # fmt: skip
_OWN_TAINTS = "node.kubernetes.io/"  # they say how a node is now


def workload_document(pods: Iterable[Obj], classes: Iterable[Obj]) -> Obj:
    """Pods of DaemonSets and static ones are the nodes' own: they are left out."""
    kept = [pod for pod in pods if not _belongs_to_node(pod)]
    began = min((_created(pod) for pod in kept), default=0.0)
    return {
        "apiVersion": workload.API_VERSION,
        "kind": workload.KIND,
        "objects": [_class(item) for item in classes if not name_of(item).startswith("system-")],
        "pods": [_pod(pod, began) for pod in sorted(kept, key=_order)],
    }


def nodes_document(nodes: Sequence[Obj], *, by_name: bool = False) -> Obj:
    """Those that are alike are one type; `by_name`: they keep their names."""
    groups: dict[bytes, tuple[Obj, list[Obj]]] = {}
    for node in nodes:
        shape = _shape(node)
        key = orjson.dumps(shape, option=orjson.OPT_SORT_KEYS)
        groups.setdefault(key, (shape, []))[1].append(node)
    types = [
        {"name": f"type-{number}", **_which(alike, by_name=by_name), **shape}
        for number, (shape, alike) in enumerate(groups.values())
    ]
    return {"apiVersion": node_types.API_VERSION, "kind": node_types.KIND, "types": types}


def _which(alike: Sequence[Obj], *, by_name: bool) -> Obj:
    return {"names": [name_of(node) for node in alike]} if by_name else {"count": len(alike)}


def _belongs_to_node(pod: Obj) -> bool:
    owners = {owner.get("kind") for owner in meta_of(pod).get("ownerReferences") or ()}
    return pod_rules.is_mirror(pod) or bool(owners & {"DaemonSet", "Node"})


def _created(pod: Obj) -> float:
    return seconds_of(meta_of(pod)["creationTimestamp"])


def _order(pod: Obj) -> tuple[float, str, str]:
    return _created(pod), namespace_of(pod), name_of(pod)


def _pod(pod: Obj, began: float) -> Obj:
    found: Obj = {
        "name": name_of(pod),
        "namespace": namespace_of(pod),
        "at": f"{_created(pod) - began:.0f}s",
        "template": {"metadata": {"labels": dict(labels_of(pod))}, "spec": _spec(pod["spec"])},
    }
    lasted = _lasted(pod)
    return found if lasted is None else {**found, "duration": f"{lasted:.0f}s"}


def _spec(spec: Obj) -> Obj:
    kept: Obj = {word: spec[word] for word in _KEPT if spec.get(word)}
    tolerations = [
        item for item in spec.get("tolerations") or () if item.get("key") not in _ADDED_TOLERATIONS
    ]
    if tolerations:
        kept["tolerations"] = tolerations
    return {**kept, "containers": [_container(item) for item in spec["containers"]]}


def _container(container: Obj) -> Obj:
    kept: Obj = {"name": container["name"], "image": container.get("image") or "lab"}
    amounts = container.get("resources") or {}
    chosen = {word: amounts[word] for word in ("requests", "limits") if amounts.get(word)}
    if chosen:
        kept["resources"] = chosen
    ports = [port for port in container.get("ports") or () if port.get("hostPort")]
    return {**kept, "ports": ports} if ports else kept


def _lasted(pod: Obj) -> float | None:
    """Of its containers, from the first start to the last end; None: they have not ended."""
    if not pod_rules.is_terminal(pod):
        return None
    ended = [
        status["state"]["terminated"]
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
        if (status.get("state") or {}).get("terminated")
    ]
    starts = [seconds_of(each["startedAt"]) for each in ended if each.get("startedAt")]
    ends = [seconds_of(each["finishedAt"]) for each in ended if each.get("finishedAt")]
    return max(0.0, max(ends) - min(starts)) if starts and ends else 0.0


def _class(item: Obj) -> Obj:
    fields = ("apiVersion", "kind", "value", "globalDefault", "preemptionPolicy")
    return {**{word: item[word] for word in fields if word in item},
            "metadata": {"name": name_of(item)}}  # fmt: skip


def _shape(node: Obj) -> Obj:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    capacity = {name: amount for name, amount in allocatable.items() if _is_kept(name, amount)}
    labels = {key: value for key, value in labels_of(node).items() if key not in _OWN_LABELS}
    taints = [
        {word: taint[word] for word in ("key", "value", "effect") if taint.get(word)}
        for taint in (node.get("spec") or {}).get("taints") or ()
        if not taint["key"].startswith(_OWN_TAINTS)
    ]
    return {"capacity": capacity, "labels": labels, **({"taints": taints} if taints else {})}


def _is_kept(name: str, amount: str) -> bool:
    return not name.startswith(("hugepages-", "attachable-volumes-")) and amount != "0"
