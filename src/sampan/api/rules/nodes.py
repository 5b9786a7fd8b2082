"""Facts about nodes that API server, scheduler, kubelet and controllers share.

Job: read a Node: readiness, addresses, taints; and whether a pod's wishes fit it. Pure.
Invariant: nothing here changes a node.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, labels_of
from sampan.api.rules import conditions, selectors

_NO_OBJ: Obj = {}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HARD_EFFECTS = ("NoSchedule", "NoExecute")


def is_native_resource(name: str) -> bool:
    """Kubernetes' own: cpu, memory, hugepages-2Mi, or with a prefix of its domain."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    return not is_native_resource(name) and not name.startswith("requests.")


def condition(node: Obj, kind: str) -> Obj | None:
    return conditions.condition_of(node, kind)


def is_ready(node: Obj) -> bool:
    return conditions.is_true(node, "Ready")


def is_unschedulable(node: Obj) -> bool:
    return bool((node.get("spec") or _NO_OBJ).get("unschedulable"))


def addresses(node: Obj, *kinds: str) -> list[str]:
    """The node's addresses, in the order of the kinds asked for; of every kind where none is."""
    listed = (node.get("status") or _NO_OBJ).get("addresses") or ()
    if not kinds:
        return [str(one.get("address")) for one in listed]
    return [str(one.get("address")) for kind in kinds for one in listed if one.get("type") == kind]


def taints_of(node: Obj) -> list[Obj]:
    taints: list[Obj] = (node.get("spec") or _NO_OBJ).get("taints") or []
    return taints


def tolerates(toleration: Obj, taint: Obj) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    same = (toleration.get("value") or "") == (taint.get("value") or "")
    # An empty key matches every taint, but only with Exists.
    return bool(operator == "Equal" and key and same)


def untolerated_taint(
    taints: Iterable[Obj], tolerations: Sequence[Obj], effects: Sequence[str] = HARD_EFFECTS
) -> Obj | None:
    """The first taint with one of the effects that no toleration covers."""
    for taint in taints:
        if taint.get("effect") in effects and not any(tolerates(one, taint) for one in tolerations):
            return taint
    return None


def fits_selector_and_affinity(pod: Obj, node: Obj) -> bool:
    """Whether the pod's nodeSelector and required node affinity let it onto the node."""
    spec = pod.get("spec") or _NO_OBJ
    labels = labels_of(node)
    for key, value in (spec.get("nodeSelector") or _NO_OBJ).items():
        if labels.get(key) != value:
            return False
    affinity = (spec.get("affinity") or _NO_OBJ).get("nodeAffinity") or _NO_OBJ
    wanted = affinity.get(_REQUIRED)
    return wanted is None or matches_node_selector(node, wanted)


def preferred_weight(pod: Obj, node: Obj) -> int:
    """The weights of the preferred terms that the node matches, added up."""
    affinity = ((pod.get("spec") or _NO_OBJ).get("affinity") or _NO_OBJ).get("nodeAffinity")
    total = 0
    for term in (affinity or _NO_OBJ).get(_PREFERRED) or ():
        preference = term.get("preference") or _NO_OBJ
        # Unlike a required term, an empty preference matches every node.
        if not _is_stated(preference) or matches_node_term(node, preference):
            total += int(term.get("weight") or 0)
    return total


def matches_node_selector(node: Obj, selector: Obj) -> bool:
    """One of the terms is enough; none of them matches nothing."""
    return any(matches_node_term(node, term) for term in selector.get("nodeSelectorTerms") or ())


def matches_node_term(node: Obj, term: Obj) -> bool:
    """Every expression and field must hold. An empty term matches nothing, and so does one that
    cannot be read."""
    if not _is_stated(term):
        return False
    try:
        return selectors.node_term(term).matches(node)
    except selectors.SelectorError:
        return False


def _is_stated(term: Obj) -> bool:
    return bool(term.get("matchExpressions") or term.get("matchFields"))
