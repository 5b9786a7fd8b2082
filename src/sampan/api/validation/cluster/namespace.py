"""Namespaces: name, finalizers, and a phase that agrees with the deletion.

Job: what must hold of a Namespace.
Invariant: Terminating means being deleted, and the other way round.
"""

from sampan.api.errors import FieldError, invalid_value
from sampan.api.objects import Obj, is_deleted, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.metadata import STANDARD_FINALIZERS
from sampan.api.validation.rules import Rules

Errors = list[FieldError]


def validate_namespace(namespace: Obj, errors: Errors) -> None:
    for finalizer in spec_of(namespace).get("finalizers") or ():
        wrong = names.qualified_name(finalizer)
        for item in wrong:
            errors.append(invalid_value("spec.finalizers", finalizer, item))
        if not wrong and "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid_value("spec.finalizers", finalizer, why))


def validate_namespace_finalizers(namespace: Obj, errors: Errors) -> None:
    """By the subresource that is for them, which names the one that is wrong."""
    for index, finalizer in enumerate(spec_of(namespace).get("finalizers") or ()):
        path = f"spec.finalizers[{index}]"
        errors += [invalid_value(path, finalizer, why) for why in names.qualified_name(finalizer)]
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid_value(path, finalizer, why))


def validate_namespace_status(new: Obj, old: Obj, errors: Errors) -> None:
    phase = status_of(new).get("phase") or ""
    if is_deleted(new):
        if phase != "Terminating":
            why = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            errors.append(invalid_value("status.Phase", phase, why))
    elif phase and phase != "Active":
        why = "may only be 'Active' if `deletionTimestamp` is empty"
        errors.append(invalid_value("status.Phase", phase, why))


RULES = Rules(names.dns_label, validate_namespace, status=validate_namespace_status)
