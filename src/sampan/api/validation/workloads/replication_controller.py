"""Replication controllers: the older replica sets, with a plain selector.

Job: what must hold of a ReplicationController.
Invariant: the selector matches the template's labels.
"""

from sampan.api.errors import FieldError, invalid_value, required_value
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.pod_spec.pod_spec import validate_pod_template
from sampan.api.validation.rules import Rules, same_rules
from sampan.api.validation.workloads.workloads import (
    MISMATCH,
    validate_counts,
    validate_replica_status,
    validate_runs_for_ever,
)

Errors = list[FieldError]


def validate_replication_controller(controller: Obj, errors: Errors) -> None:
    spec = spec_of(controller)
    validate_counts(spec, "spec", ("replicas", "minReadySeconds"), errors)
    selector = spec.get("selector") or {}
    if not selector:
        errors.append(required_value("spec.selector"))
    template = spec.get("template")
    if template is None:
        errors.append(required_value("spec.template"))
        return
    labels = (template.get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        errors.append(invalid_value("spec.template.metadata.labels", labels, MISMATCH))
    validate_pod_template(template, "spec.template", errors)
    validate_runs_for_ever(template, "ReplicationController", errors)


RULES = Rules(
    names.dns_subdomain,
    validate_replication_controller,
    same_rules(validate_replication_controller),
    validate_replica_status,
)
