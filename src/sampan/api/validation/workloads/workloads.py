"""What the kinds that make pods have in common: selector, template, counts, percentages.

Job: shared rules of ReplicaSet, Deployment, StatefulSet, DaemonSet and ReplicationController.
Invariant: a selector matches the template's labels, or the controller would make pods for ever.
"""

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, status_of
from sampan.api.rules import names, selectors
from sampan.api.validation.fields import (
    NOT_NEGATIVE,
    validate_immutable,
    validate_not_negative,
    validate_with,
)
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.pod_spec.pod_spec import validate_pod_template
from sampan.api.validation.selectors import (
    is_empty_selector,
    validate_label_selector,
)

Errors = list[FieldError]
_NOT_READ = "invalid label selector"
MISMATCH = "`selector` does not match template `labels`"


def validate_selector(spec: Obj, kind: str, errors: Errors) -> None:
    selector = spec.get("selector")
    if selector is None:
        if kind != "daemonset":  # as upstream, which says only that nothing matches
            errors.append(required_value("spec.selector"))
        return
    validate_label_selector(selector, "spec.selector", errors)
    if is_empty_selector(selector):
        why = f"empty selector is invalid for {kind}"
        errors.append(invalid_value("spec.selector", selector, why))


def validate_template(spec: Obj, kind: str, errors: Errors) -> None:
    """A template whose pods are to run for ever, and are found by the selector."""
    template = spec.get("template") or {}
    if not validate_selects(spec, errors, is_set=kind == "StatefulSet"):
        return
    validate_pod_template(template, "spec.template", errors)
    validate_runs_for_ever(template, kind, errors)


def validate_selects(spec: Obj, errors: Errors, *, is_set: bool = False) -> bool:
    """Whether the selector can be read at all; if so, it must match the template's labels."""
    selector = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    wrong: Errors = []
    validate_label_selector(selector, "", wrong)
    if wrong:
        shown = internal_form("v1.LabelSelector", selector)
        errors.append(invalid_value("spec.selector", shown, "" if is_set else _NOT_READ))
        return False
    matches = selectors.from_object(selector).matches(labels or {})
    if not matches and (selector is None or not is_empty_selector(selector)):
        shown = labels and dict(sorted(labels.items()))
        errors.append(invalid_value("spec.template.metadata.labels", shown, MISMATCH))
    return True


def validate_matches_template(spec: Obj, errors: Errors) -> None:
    """A selector that can be read matches the template's labels; no other is spoken of."""
    selector = spec.get("selector")
    wrong: Errors = []
    validate_label_selector(selector, "", wrong)
    if wrong:
        return
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not selectors.from_object(selector).matches(labels or {}):
        shown = labels and dict(sorted(labels.items()))
        errors.append(invalid_value("spec.template.metadata.labels", shown, MISMATCH))


def validate_runs_for_ever(template: Obj, kind: str, errors: Errors) -> None:
    spec = template.get("spec") or {}
    policy = spec.get("restartPolicy") or ""
    if policy != "Always":
        path = "spec.template.spec.restartPolicy"
        errors.append(not_supported(path, policy, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(field_forbidden("spec.template.spec.activeDeadlineSeconds", why))


def validate_counts(obj: Obj, path: str, keys: tuple[str, ...], errors: Errors) -> None:
    for key in keys:
        validate_not_negative(obj.get(key), f"{path}.{key}", errors)


def validate_count_or_percent(value: int | str | None, path: str, errors: Errors) -> None:
    if isinstance(value, str):
        validate_with(names.percent, value, path, errors)
    elif value is not None and value < 0:
        errors.append(invalid_value(path, value, NOT_NEGATIVE))


def validate_at_most_all(value: int | str | None, path: str, errors: Errors) -> None:
    if isinstance(value, str) and number_of(value) > 100:
        errors.append(invalid_value(path, value, "must not be greater than 100%"))


def number_of(value: int | str | None) -> int:
    """For a test against zero: `0%` is none, `25%` is some."""
    if not isinstance(value, str):
        return value or 0
    # Nine digits are enough to be too many.
    return int(value[:-1][:9]) if not names.percent(value) else 0


def validate_replica_status(new: Obj, old: Obj, errors: Errors) -> None:
    """Of ReplicaSets and ReplicationControllers."""
    status = status_of(new)
    keys = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    validate_counts(status, "status", (*keys, "terminatingReplicas", "observedGeneration"), errors)
    validate_parts_of_replicas(status, keys[1:], errors)
    validate_available(status, "readyReplicas", errors)


def validate_parts_of_replicas(status: Obj, keys: tuple[str, ...], errors: Errors) -> None:
    total = status.get("replicas") or 0
    for key in keys:
        count = status.get(key) or 0
        if count > total:
            why = "cannot be greater than status.replicas"
            errors.append(invalid_value(f"status.{key}", count, why))


def validate_available(status: Obj, ready_words: str, errors: Errors) -> None:
    ready, available = status.get("readyReplicas") or 0, status.get("availableReplicas") or 0
    if available > ready:
        why = f"cannot be greater than {ready_words}"
        errors.append(invalid_value("status.availableReplicas", available, why))


def validate_collisions(new: Obj, old: Obj, errors: Errors) -> None:
    """The count of hash collisions never falls."""
    count, was = (status_of(item).get("collisionCount") for item in (new, old))
    if was is not None and (count or 0) < was:
        errors.append(invalid_value("status.collisionCount", count or 0, "cannot be decremented"))


def validate_same_selector(spec: Obj, was: Obj, errors: Errors) -> None:
    now, had = (internal_form("v1.LabelSelector", each.get("selector")) for each in (spec, was))
    validate_immutable(now, had, "spec.selector", errors)
