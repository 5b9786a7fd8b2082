"""Priority classes: a number, and the names that the system keeps for itself.

Job: what must hold of a PriorityClass.
Invariant: the value of a class never changes, since pods have copied it.
"""

from sampan.api.errors import FieldError, field_forbidden
from sampan.api.objects import Obj, name_of
from sampan.api.rules import names
from sampan.api.validation.fields import validate_choice, validate_immutable
from sampan.api.validation.rules import Rules

Errors = list[FieldError]
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


def validate_priority_class(priority: Obj, errors: Errors) -> None:
    name, value = name_of(priority), priority.get("value") or 0
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != value:
            known = SYSTEM_CLASSES.get(name)
            said = (
                f"{name} is not a known system priority class"
                if known is None
                else f"value of {name} PriorityClass must be {known}"
            )
            why = (
                "priority class names with 'system-' prefix are reserved for system use only."
                f" error: {said}"
            )
            errors.append(field_forbidden("metadata.name", why))
    elif value > HIGHEST_USER_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(field_forbidden("value", why))
    if priority.get("preemptionPolicy") is not None:
        choices = ("PreemptLowerPriority", "Never")
        validate_choice(priority["preemptionPolicy"], choices, "preemptionPolicy", errors)


def validate_priority_class_update(new: Obj, old: Obj, errors: Errors) -> None:
    if (new.get("value") or 0) != (old.get("value") or 0):
        errors.append(field_forbidden("value", "may not be changed in an update."))
    key = "preemptionPolicy"
    validate_immutable(new.get(key), old.get(key), key, errors)


RULES = Rules(names.dns_subdomain, validate_priority_class, validate_priority_class_update)
