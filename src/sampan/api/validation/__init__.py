"""Validation: the entry points.

Job: look up the kind's rules, run them after the rules for metadata, gather every cause.
Invariant: pure, and never raises: an object whose shape the schema should have refused is answered
    with a cause like any other.
To add a kind: a file beside this one with a `RULES`, and a line in kinds.py.
"""

from collections.abc import Callable
from functools import partial

from sampan.api.custom.custom_version import custom_of
from sampan.api.errors import FieldError, type_invalid
from sampan.api.objects import Obj, meta_of
from sampan.api.resources import Resource, by_plural
from sampan.api.validation.custom_resources.custom_object import object_errors, status_errors
from sampan.api.validation.declarative import in_order
from sampan.api.validation.kinds import rules_of_kind
from sampan.api.validation.metadata import (
    validate_known_finalizers,
    validate_metadata,
    validate_metadata_update,
)
from sampan.api.validation.rules import Rules

_DEFAULT = Rules()
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError)


def rules_of(resource: Resource) -> Rules:
    return rules_of_kind(resource.group, resource.kind) or _DEFAULT


def validate_create(
    resource: Resource, obj: Obj, warnings: list[str] | None = None
) -> list[FieldError]:
    """`warnings`: where to put what is not wrong, but worth a word."""
    rules = rules_of(resource)
    said = [] if warnings is None else warnings

    def run(errors: list[FieldError]) -> None:
        _validate_identity(resource, rules, obj, errors)
        rules.create(obj, errors)
        custom = custom_of(resource)
        if custom is not None:
            errors += object_errors(custom, obj, None, said)

    return _gather(run)


def validate_identity(resource: Resource, obj: Obj) -> list[FieldError]:
    """Of a new object whose other parts are known to be good."""
    return _gather(partial(_validate_identity, resource, rules_of(resource), obj))


def _validate_identity(
    resource: Resource, rules: Rules, obj: Obj, errors: list[FieldError]
) -> None:
    if rules.has_identity:
        meta = meta_of(obj)
        validate_metadata(meta, resource.namespaced, rules.name, "metadata", errors)
        _validate_finalizers(resource, meta, errors)


def validate_update(
    resource: Resource, new: Obj, old: Obj, warnings: list[str] | None = None
) -> list[FieldError]:
    """`new` must carry the resourceVersion that it is based on, also for an unconditional write."""
    rules = rules_of(resource)
    said = [] if warnings is None else warnings

    def run(errors: list[FieldError]) -> None:
        validate_metadata_update(meta_of(new), meta_of(old), "metadata", errors)
        _validate_finalizers(resource, meta_of(new), errors)
        rules.update(new, old, errors)
        custom = custom_of(resource)
        if custom is not None:
            errors += object_errors(custom, new, old, said)

    return _gather(run)


def validate_status_update(
    resource: Resource, new: Obj, old: Obj, warnings: list[str] | None = None
) -> list[FieldError]:
    rules = rules_of(resource)
    said = [] if warnings is None else warnings

    def run(errors: list[FieldError]) -> None:
        validate_metadata_update(meta_of(new), meta_of(old), "metadata", errors)
        rules.status(new, old, errors)
        custom = custom_of(resource)
        if custom is not None:
            errors += status_errors(custom, new, old, said)

    return _gather(run)


# Whose validation upstream does not ask whether a finalizer has a domain.
_ANY_FINALIZERS = frozenset({
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io",
    "coordination.k8s.io", "node.k8s.io",
})  # fmt: skip


def _validate_finalizers(resource: Resource, meta: Obj, errors: list[FieldError]) -> None:
    is_built_in = by_plural(resource.group, resource.version, resource.plural) is not None
    if is_built_in and resource.group not in _ANY_FINALIZERS and meta.get("finalizers"):
        validate_known_finalizers(meta, "metadata", errors)


def _gather(run: Callable[[list[FieldError]], None]) -> list[FieldError]:
    errors: list[FieldError] = []
    try:
        run(errors)
    except _MALFORMED as wrong:
        errors.append(type_invalid("", "", f"the object's shape is not that of its kind: {wrong}"))
    return in_order(errors) if errors else errors
