"""Replica sets: counts, selector, template.

Job: what must hold of a ReplicaSet.
Invariant: the selector never changes.
"""

from sampan.api.errors import FieldError
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.rules import Rules
from sampan.api.validation.workloads.workloads import (
    validate_counts,
    validate_replica_status,
    validate_same_selector,
    validate_selector,
    validate_template,
)

Errors = list[FieldError]


def validate_replica_set(replica_set: Obj, errors: Errors) -> None:
    spec = spec_of(replica_set)
    validate_counts(spec, "spec", ("replicas", "minReadySeconds"), errors)
    validate_selector(spec, "deployment", errors)
    validate_template(spec, "ReplicaSet", errors)


def validate_replica_set_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_replica_set(new, errors)
    validate_same_selector(spec_of(new), spec_of(old), errors)


RULES = Rules(
    names.dns_subdomain, validate_replica_set, validate_replica_set_update, validate_replica_status
)
