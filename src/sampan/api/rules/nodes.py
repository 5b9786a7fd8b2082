"""Facts about nodes that API server, scheduler, kubelet and controllers share.

Job: read a Node: readiness, addresses, taints. Pure.
Invariant: nothing here changes a node.
"""

from sampan.api.objects import Obj
from sampan.api.rules import conditions

# The conditions that a node's own agent keeps; others may add theirs.
KUBELET_CONDITIONS = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"})
SIMULATED = "simulated"  # the OS image of a node that is
_NO_OBJ: Obj = {}


def is_native_resource(name: str) -> bool:
    """Kubernetes' own: cpu, memory, hugepages-2Mi, or with a prefix of its domain."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    return not is_native_resource(name) and not name.startswith("requests.")


def condition(node: Obj, kind: str) -> Obj | None:
    return conditions.condition_of(node, kind)


def is_ready(node: Obj) -> bool:
    return conditions.is_true(node, "Ready")


def is_simulated(node: Obj) -> bool:
    """It has an agent, and no containers."""
    info = (node.get("status") or _NO_OBJ).get("nodeInfo") or _NO_OBJ
    return bool(info.get("osImage") == SIMULATED)


def is_unschedulable(node: Obj) -> bool:
    return bool((node.get("spec") or _NO_OBJ).get("unschedulable"))


def addresses(node: Obj, *kinds: str) -> list[str]:
    """The node's addresses, in the order of the kinds asked for; of every kind where none is."""
    listed = (node.get("status") or _NO_OBJ).get("addresses") or ()
    if not kinds:
        return [str(item.get("address")) for item in listed]
    return [
        str(item.get("address")) for kind in kinds for item in listed if item.get("type") == kind
    ]


def taints_of(node: Obj) -> list[Obj]:
    taints: list[Obj] = (node.get("spec") or _NO_OBJ).get("taints") or []
    return taints
