"""What pods ask of other pods: selectors, affinity terms, spread constraints, as values. Pure.

Job: read them from a pod, and match them with one pod.
Invariant: no selector (null) matches nothing; an empty one matches everything.
"""

from collections.abc import Mapping

from sampan.api.objects import Obj, labels_of, namespace_of
from sampan.api.rules.node_selectors import (
    Requirement,
    Requirements,
    label_requirements,
    requirements_of,
)
from sampan.core.fast_dataclass import dataclass

Selector = Requirements | None
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Pods of some namespaces with some labels."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    labels: Selector

    def matches(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        return (
            namespace in self.namespaces or selects(self.namespace_selector, namespace_labels)
        ) and selects(self.labels, labels)


@dataclass(frozen=True, slots=True)
class Kind:
    """Pods that all of the selectors match."""

    selectors: tuple[PodSelector, ...]
    with_terminating: bool = True

    def includes(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        return all(
            selector.matches(namespace, namespace_labels, labels) for selector in self.selectors
        )


@dataclass(frozen=True, slots=True)
class PodTerm:
    selector: PodSelector
    topology_key: str


@dataclass(frozen=True, slots=True)
class Spread:
    topology_key: str
    max_skew: int
    min_domains: int
    hard: bool
    selector: PodSelector
    honor_affinity: bool
    honor_taints: bool


@dataclass(frozen=True, slots=True)
class PodDemands:
    """Everything a pod asks of others."""

    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    preferred: tuple[tuple[int, PodTerm], ...] = ()  # a weight below zero keeps away
    spread: tuple[Spread, ...] = ()


@dataclass(frozen=True, slots=True)
class Carried:
    """A term that a pod on a node carries and that bears on pods which come later."""

    term: PodTerm
    forbids: bool  # required anti-affinity
    attracts: bool  # required affinity: the profile says what it is worth to be near
    weight: int  # else: what it is worth


NO_DEMANDS = PodDemands()


def selects(selector: Selector, labels: Labels) -> bool:
    return selector is not None and selector.hold(labels)


def demands_of(pod: Obj) -> PodDemands:
    spec = pod.get("spec") or {}
    affinity, constraints = spec.get("affinity"), spec.get("topologySpreadConstraints")
    if not affinity and not constraints:
        return NO_DEMANDS
    near = (affinity or {}).get("podAffinity") or {}
    apart = (affinity or {}).get("podAntiAffinity") or {}
    return PodDemands(
        affinity=_required_terms(near, pod),
        anti_affinity=_required_terms(apart, pod),
        preferred=(*_preferred_terms(near, pod, 1), *_preferred_terms(apart, pod, -1)),
        spread=tuple(_spread(constraint, pod) for constraint in constraints or ()),
    )


def carried_by(demands: PodDemands) -> tuple[Carried, ...]:
    return (
        *(Carried(term, True, False, 0) for term in demands.anti_affinity),
        *(Carried(term, False, True, 0) for term in demands.affinity),
        *(Carried(term, False, False, weight) for weight, term in demands.preferred),
    )


def selector_of(written: Obj | None) -> Selector:
    """A LabelSelector as requirements."""
    if written is None:
        return None
    return Requirements(
        (
            *label_requirements(written.get("matchLabels") or {}),
            *requirements_of(written.get("matchExpressions")),
        )
    )


def _required_terms(kind: Obj, pod: Obj) -> tuple[PodTerm, ...]:
    terms = kind.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term, pod) for term in terms)


def _preferred_terms(kind: Obj, pod: Obj, sign: int) -> tuple[tuple[int, PodTerm], ...]:
    return tuple(
        (sign * int(item.get("weight") or 0), _term(item.get("podAffinityTerm") or {}, pod))
        for item in kind.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    )


def _term(written: Obj, pod: Obj) -> PodTerm:
    namespaces = frozenset(written.get("namespaces") or ())
    namespace_selector = selector_of(written.get("namespaceSelector"))
    if not namespaces and namespace_selector is None:
        namespaces = frozenset({namespace_of(pod)})
    labels = selector_of(written.get("labelSelector"))
    selector = PodSelector(namespaces, namespace_selector, labels)
    return PodTerm(selector, written.get("topologyKey") or "")


def _with_keys(selector: Selector, written: Obj, pod: Obj) -> Selector:
    """matchLabelKeys: the pod's own values of these labels; as upstream, of spread constraints
    only: terms of affinity have them in their selectors since the pod was created."""
    if selector is None:
        return None
    own = labels_of(pod)
    known = set(selector)
    extra = [
        requirement
        for key in written.get("matchLabelKeys") or ()
        if key in own and (requirement := Requirement(key, "In", (own[key],))) not in known
    ]
    return Requirements((*selector, *extra)) if extra else selector


def _spread(written: Obj, pod: Obj) -> Spread:
    labels = _with_keys(selector_of(written.get("labelSelector")), written, pod)
    return Spread(
        topology_key=written.get("topologyKey") or "",
        max_skew=int(written.get("maxSkew") or 1),
        min_domains=int(written.get("minDomains") or 1),
        hard=written.get("whenUnsatisfiable") != "ScheduleAnyway",
        selector=PodSelector(frozenset({namespace_of(pod)}), None, labels),
        honor_affinity=written.get("nodeAffinityPolicy") != "Ignore",
        honor_taints=written.get("nodeTaintsPolicy") == "Honor",
    )
