"""Daemon sets: selector, template, and a rolling update that can make progress.

Job: what must hold of a DaemonSet.
Invariant: an update either takes pods away first or adds them first, not both.
"""

from sampan.api.errors import FieldError, invalid_value, not_supported, required_value
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.pod_spec.pod_spec import validate_pod_template
from sampan.api.validation.rules import Rules
from sampan.api.validation.workloads.workloads import (
    number_of,
    validate_at_most_all,
    validate_collisions,
    validate_count_or_percent,
    validate_counts,
    validate_matches_template,
    validate_runs_for_ever,
    validate_same_selector,
    validate_selector,
)

Errors = list[FieldError]
_STATUS = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
    "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
)  # fmt: skip


def validate_daemon_set(daemon_set: Obj, errors: Errors) -> None:
    spec = spec_of(daemon_set)
    validate_selector(spec, "daemonset", errors)
    validate_matches_template(spec, errors)
    template = spec.get("template") or {}
    validate_pod_template(template, "spec.template", errors)
    validate_runs_for_ever(template, "DaemonSet", errors)
    validate_counts(spec, "spec", ("minReadySeconds", "revisionHistoryLimit"), errors)
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    path = "spec.updateStrategy"
    if kind not in ("OnDelete", "RollingUpdate"):
        errors.append(
            not_supported(
                path,
                internal_form("DaemonSetUpdateStrategy", strategy),
                ("RollingUpdate", "OnDelete"),
            )
        )
    elif kind == "RollingUpdate":
        if rolling is None:
            errors.append(required_value(f"{path}.rollingUpdate"))
        else:
            _validate_rolling(rolling, f"{path}.rollingUpdate", errors)


def validate_daemon_set_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_daemon_set(new, errors)
    validate_same_selector(spec_of(new), spec_of(old), errors)


def validate_daemon_set_status(new: Obj, old: Obj, errors: Errors) -> None:
    validate_counts(status_of(new), "status", (*_STATUS, "collisionCount"), errors)
    validate_collisions(new, old, errors)


def _validate_rolling(rolling: Obj, path: str, errors: Errors) -> None:
    missing, extra = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    for key, value in (("maxUnavailable", missing), ("maxSurge", extra)):
        validate_count_or_percent(value, f"{path}.{key}", errors)
        validate_at_most_all(value, f"{path}.{key}", errors)
    if number_of(missing) and number_of(extra):
        why = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid_value(f"{path}.maxSurge", extra, why))
    if not number_of(missing) and not number_of(extra):
        errors.append(required_value(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))


RULES = Rules(
    names.dns_subdomain,
    validate_daemon_set,
    validate_daemon_set_update,
    validate_daemon_set_status,
)
