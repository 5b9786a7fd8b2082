"""Runtime classes: a handler, its overhead, and where it can run.

Job: what must hold of a RuntimeClass.
Invariant: the handler never changes.
"""

from sampan.api.errors import FieldError, duplicate
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import Repeats, validate_immutable, validate_with
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.metadata import validate_labels
from sampan.api.validation.pod_spec.resources import validate_overhead
from sampan.api.validation.pod_spec.scheduling import validate_tolerations
from sampan.api.validation.rules import Rules

Errors = list[FieldError]


def validate_runtime_class(runtime: Obj, errors: Errors) -> None:
    validate_with(names.dns_label, runtime.get("handler") or "", "handler", errors)
    fixed = (runtime.get("overhead") or {}).get("podFixed")
    if fixed:
        validate_overhead(fixed, "overhead", errors)
    scheduling = runtime.get("scheduling") or {}
    validate_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector", errors)
    _validate_tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations", errors)


def _validate_tolerations(tolerations: list[Obj], path: str, errors: Errors) -> None:
    validate_tolerations(tolerations, path, errors)
    is_repeated = Repeats()
    for index, toleration in enumerate(tolerations):
        if is_repeated(frozenset(toleration.items())):
            errors.append(duplicate(f"{path}[{index}]", internal_form("Toleration", toleration)))


def validate_runtime_class_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_runtime_class(new, errors)
    validate_immutable(new.get("handler") or "", old.get("handler"), "handler", errors)


RULES = Rules(names.dns_subdomain, validate_runtime_class, validate_runtime_class_update)
