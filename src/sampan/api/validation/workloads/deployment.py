"""Deployments: selector, template, and a strategy that can make progress.

Job: what must hold of a Deployment.
Invariant: a rolling update may always replace at least one pod.
"""

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.rules import Rules
from sampan.api.validation.workloads.workloads import (
    number_of,
    validate_at_most_all,
    validate_available,
    validate_collisions,
    validate_count_or_percent,
    validate_counts,
    validate_parts_of_replicas,
    validate_same_selector,
    validate_selector,
    validate_template,
)

Errors = list[FieldError]
_COUNTS = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")


def validate_deployment(deployment: Obj, errors: Errors) -> None:
    spec = spec_of(deployment)
    validate_counts(spec, "spec", _COUNTS, errors)
    validate_selector(spec, "deployment", errors)
    validate_template(spec, "ReplicaSet", errors)
    _validate_strategy(spec.get("strategy") or {}, errors)
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if deadline is not None and deadline <= ready:
        why = "must be greater than minReadySeconds"
        errors.append(invalid_value("spec.progressDeadlineSeconds", deadline, why))


def validate_deployment_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_deployment(new, errors)
    validate_same_selector(spec_of(new), spec_of(old), errors)


def _validate_strategy(strategy: Obj, errors: Errors) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    path = "spec.strategy.rollingUpdate"
    if kind == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(field_forbidden(path, why))
    elif kind == "RollingUpdate":
        if rolling is None:
            errors.append(required_value(path, "this should be defaulted and never be nil"))
        else:
            _validate_rolling(rolling, path, errors)
    else:
        errors.append(
            not_supported(
                "spec.strategy",
                internal_form("DeploymentStrategy", strategy),
                ("Recreate", "RollingUpdate"),
            )
        )


def _validate_rolling(rolling: Obj, path: str, errors: Errors) -> None:
    missing, extra = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    validate_count_or_percent(missing, f"{path}.maxUnavailable", errors)
    validate_count_or_percent(extra, f"{path}.maxSurge", errors)
    if number_of(missing) == 0 and number_of(extra) == 0:
        why = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid_value(f"{path}.maxUnavailable", missing, why))
    validate_at_most_all(missing, f"{path}.maxUnavailable", errors)


def validate_deployment_status(new: Obj, old: Obj, errors: Errors) -> None:
    status = status_of(new)
    keys = (
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "terminatingReplicas", "collisionCount",
    )  # fmt: skip
    validate_counts(status, "status", keys, errors)
    parts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    validate_parts_of_replicas(status, parts, errors)
    validate_available(status, "readyReplicas", errors)
    validate_collisions(new, old, errors)


RULES = Rules(
    names.dns_subdomain, validate_deployment, validate_deployment_update, validate_deployment_status
)
