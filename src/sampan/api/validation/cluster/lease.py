"""Leases: duration and transitions.

Job: what must hold of a Lease.
Invariant: a duration is positive, a count of transitions is not negative.
"""

from sampan.api.errors import FieldError, invalid_value
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.fields import POSITIVE, validate_not_negative
from sampan.api.validation.rules import Rules, same_rules

Errors = list[FieldError]


def validate_lease(lease: Obj, errors: Errors) -> None:
    spec = spec_of(lease)
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        errors.append(invalid_value("spec.leaseDurationSeconds", seconds, POSITIVE))
    validate_not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions", errors)


RULES = Rules(names.dns_subdomain, validate_lease, same_rules(validate_lease))
