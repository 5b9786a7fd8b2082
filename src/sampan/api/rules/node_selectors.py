"""Node selectors: what a pod, a volume or a device asks of a node's labels and name.

Job: read terms, match them with one node. Pure.
Invariant: terms are alternatives; the requirements of one term must all hold; an empty term, and an
    empty list of terms, match nothing.
Invariant: many requirements cost by the labels that they are matched with, not by their number.
"""

from collections.abc import Iterable, Mapping, Sequence

from sampan.api.objects import Obj
from sampan.core.digits import all_digits
from sampan.core.digits import whole_number as digits_of
from sampan.core.fast_dataclass import dataclass

NAME_FIELD = "metadata.name"
MANY = 8  # requirements of one selector, or values of one of them
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str
    values: tuple[str, ...]


class Requirements(tuple[Requirement, ...]):
    """All must hold. What is asked of one key is put together once, where they are many."""

    _hash: int | None = None
    _merged: "_Merged | None" = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def hold(self, labels: Mapping[str, str]) -> bool:
        if len(self) <= MANY and all(len(item.values) <= MANY for item in self):
            return all(holds(item, labels.get(item.key)) for item in self)
        if self._merged is None:
            self._merged = _Merged(self)
        return self._merged.hold(labels)


class _Merged:
    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._one_of: dict[str, frozenset[str]] = {}
        self._none_of: dict[str, frozenset[str]] = {}
        self._there: set[str] = set()
        self._absent: set[str] = set()
        self._others: list[Requirement] = []
        for item in requirements:
            values = frozenset(item.values)
            match item.operator:
                case "In":
                    self._one_of[item.key] = self._one_of.get(item.key, values) & values
                case "NotIn":
                    self._none_of[item.key] = self._none_of.get(item.key, values) | values
                case "Exists":
                    self._there.add(item.key)
                case "DoesNotExist":
                    self._absent.add(item.key)
                case _:
                    self._there.add(item.key)
                    self._others.append(item)
        self._there -= self._one_of.keys()
        self._needed = len(self._one_of) + len(self._there)

    def hold(self, labels: Mapping[str, str]) -> bool:
        if self._needed > len(labels):
            return False
        if not all(labels.get(key) in values for key, values in self._one_of.items()):
            return False
        if not self._there <= labels.keys():
            return False
        for key, value in labels.items():
            if key in self._absent or value in self._none_of.get(key, ()):
                return False
        return all(holds(item, labels.get(item.key)) for item in self._others)


@dataclass(frozen=True, slots=True)
class Term:
    labels: Requirements
    fields: Requirements


def term_of(written: Obj) -> Term:
    return Term(
        requirements_of(written.get("matchExpressions")),
        requirements_of(written.get("matchFields")),
    )


def label_requirements(pairs: Mapping[str, str]) -> Requirements:
    """A map of labels, such as a pod's nodeSelector, as requirements."""
    return Requirements(Requirement(key, "In", (value,)) for key, value in sorted(pairs.items()))


def required_terms(pod: Obj) -> tuple[Term, ...] | None:
    """Of the pod's required node affinity; None where it has none."""
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(_REQUIRED)
    if required is None:
        return None
    return tuple(term_of(term) for term in required.get("nodeSelectorTerms") or ())


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of a node: what a pod's nodeSelector and required node affinity ask for, read once."""

    labels: Mapping[str, str]
    terms: "Alternatives | None"  # None: any node will do

    def may_run_on(self, name: str, labels: Mapping[str, str]) -> bool:
        if not self.labels.items() <= labels.items():
            return False
        return self.terms is None or self.terms.any_matches(name, labels)


class Alternatives:
    """Many terms for many nodes: each stands under something that a node must have to meet it, if
    there is such a thing, so that a node is compared with few of them."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._count = len(terms)
        self._others: list[Term] = []
        self._by_label: dict[str, list[Term]] = {}
        self._by_value: dict[tuple[str, str], list[Term]] = {}
        for term in terms:
            self._add(term)

    def __len__(self) -> int:
        return self._count

    def any_matches(self, name: str, labels: Mapping[str, str]) -> bool:
        found = [*self._others, *self._by_value.get((NAME_FIELD, name), ())]
        for label in labels.items():
            found += self._by_label.get(label[0], ())
            found += self._by_value.get(label, ())
        return any_matches(found, name, labels)

    def _add(self, term: Term) -> None:
        for item in (*term.fields, *term.labels):
            match item.operator:
                case "In":
                    for value in item.values:
                        self._by_value.setdefault((item.key, value), []).append(term)
                    return
                case "Exists" | "Gt" | "Lt" if item.key != NAME_FIELD:
                    self._by_label.setdefault(item.key, []).append(term)
                    return
        self._others.append(term)


def wanted_of(pod: Obj) -> Wanted:
    terms = required_terms(pod)
    wanted = (pod.get("spec") or {}).get("nodeSelector") or {}
    return Wanted(wanted, None if terms is None else Alternatives(terms))


def may_run_on(pod: Obj, name: str, labels: Mapping[str, str]) -> bool:
    """Whether the pod's nodeSelector and required node affinity let it onto the node."""
    wanted: Mapping[str, str] = (pod.get("spec") or {}).get("nodeSelector") or {}
    terms = required_terms(pod) if wanted.items() <= labels.items() else ()
    return terms is None or any_matches(terms, name, labels)


def any_matches(terms: Sequence[Term], name: str, labels: Mapping[str, str]) -> bool:
    return any(matches(term, name, labels) for term in terms)


def matches(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    if not term.labels and not term.fields:
        return False
    return term.labels.hold(labels) and term.fields.hold({NAME_FIELD: name})


def holds(requirement: Requirement, value: str | None) -> bool:
    """Whether a value (None = there is none) meets the requirement."""
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return value is not None and _compare(requirement, value)
        case _:
            return False  # validation lets none other pass


def _compare(requirement: Requirement, value: str) -> bool:
    if len(requirement.values) != 1:
        return False
    found, limit = whole_number(value), whole_number(requirement.values[0])
    if found is None or limit is None:
        return False
    return found > limit if requirement.operator == "Gt" else found < limit


def whole_number(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not all_digits(digits):
        return None
    number = digits_of(text)
    return number if -(2**63) <= number < 2**63 else None


def requirements_of(written: Sequence[Obj] | None) -> Requirements:
    return Requirements(
        Requirement(item["key"], item["operator"], tuple(item.get("values") or ()))
        for item in written or ()
    )
