"""Node selectors: what a pod, a volume or a device asks of a node's labels and name.

Job: read terms, match them with one node. Pure.
Invariant: terms are alternatives; the requirements of one term must all hold; an empty term, and an
    empty list of terms, match nothing.
"""

from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj
from sampan.core.digits import all_digits
from sampan.core.digits import whole_number as digits_of
from sampan.core.fast_dataclass import dataclass

NAME_FIELD = "metadata.name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    labels: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]


def term_of(written: Obj) -> Term:
    return Term(
        _requirements(written.get("matchExpressions")), _requirements(written.get("matchFields"))
    )


def label_requirements(pairs: Mapping[str, str]) -> tuple[Requirement, ...]:
    """A map of labels, such as a pod's nodeSelector, as requirements."""
    return tuple(Requirement(key, "In", (value,)) for key, value in sorted(pairs.items()))


def required_terms(pod: Obj) -> tuple[Term, ...] | None:
    """Of the pod's required node affinity; None where it has none."""
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(_REQUIRED)
    if required is None:
        return None
    return tuple(term_of(term) for term in required.get("nodeSelectorTerms") or ())


def may_run_on(pod: Obj, name: str, labels: Mapping[str, str]) -> bool:
    """Whether the pod's nodeSelector and required node affinity let it onto the node."""
    wanted: Mapping[str, str] = (pod.get("spec") or {}).get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    terms = required_terms(pod)
    return terms is None or any_matches(terms, name, labels)


def any_matches(terms: Sequence[Term], name: str, labels: Mapping[str, str]) -> bool:
    return any(matches(term, name, labels) for term in terms)


def matches(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(holds(label, labels.get(label.key)) for label in term.labels) and all(
        holds(field, name if field.key == NAME_FIELD else None) for field in term.fields
    )


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


def _requirements(written: Sequence[Obj] | None) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(item["key"], item["operator"], tuple(item.get("values") or ()))
        for item in written or ()
    )
