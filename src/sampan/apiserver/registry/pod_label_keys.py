"""matchLabelKeys and mismatchLabelKeys of a new pod.

Job: what they say of the pod's labels becomes part of the selectors beside them, so that whoever
    reads a selector (another scheduler, an autoscaler) knows it, and later labels change nothing.
Invariant: a pod is merged once; a selector that is absent matches nothing and stays absent.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj, labels_of

_FIELDS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def merge_label_keys(pod: Obj) -> None:
    """As mutatePodAffinity and mutateTopologySpreadConstraints."""
    labels = labels_of(pod)
    for term in _terms(pod.get("spec") or {}):
        selector = term.get("labelSelector")
        merged = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for field, operator in _FIELDS
            for key in term.get(field) or ()
            if key in labels
        ]
        if merged and selector is not None:
            expressions = [*(selector.get("matchExpressions") or ()), *merged]
            term["labelSelector"] = {**selector, "matchExpressions": expressions}


def _terms(spec: Obj) -> Iterator[Obj]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    yield from spec.get("topologySpreadConstraints") or ()
