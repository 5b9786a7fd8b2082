"""Horizontal pod autoscalers: bounds, target, metrics, behaviour (as stored: autoscaling/v2).

Job: what must hold of a HorizontalPodAutoscaler, in either version.
Invariant: the least number of replicas is not above the most.
"""

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.declarative import declared
from sampan.api.validation.fields import (
    validate_choice,
    validate_optional_choice,
    validate_with,
)
from sampan.api.validation.rules import Rules
from sampan.api.validation.workloads.workloads import validate_counts

Errors = list[FieldError]
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def validate_autoscaler(autoscaler: Obj, errors: Errors) -> None:
    _validate_autoscaler(autoscaler, int(not features.enabled("HPAScaleToZero")), errors)


def validate_autoscaler_update(new: Obj, old: Obj, errors: Errors) -> None:
    may_be_none = features.enabled("HPAScaleToZero") or spec_of(old).get("minReplicas") == 0
    _validate_autoscaler(new, int(not may_be_none), errors)


def _validate_autoscaler(autoscaler: Obj, fewest: int, errors: Errors) -> None:
    spec = spec_of(autoscaler)
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < fewest:
        why = f"must be greater than or equal to {fewest}"
        errors.append(invalid_value("spec.minReplicas", least, why))
    _validate_most(most, errors)
    if least is not None and most < least:
        why = "must be greater than or equal to `minReplicas`"
        errors.append(invalid_value("spec.maxReplicas", most, why))
    target = spec.get("scaleTargetRef") or {}
    for key in ("kind", "name"):
        value, path = target.get(key), f"spec.scaleTargetRef.{key}"
        if not value:
            errors.append(required_value(path))
        else:
            validate_with(names.path_segment, value, path, errors)
    if "/" not in (target.get("apiVersion") or ""):
        why = "apiVersion must specify API group"
        version = target.get("apiVersion") or ""
        errors.append(invalid_value("spec.scaleTargetRef.apiVersion", version, why))
    _validate_metrics(spec, least, errors)
    for direction in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(direction)
        if rules is not None:
            _validate_behaviour(rules, f"spec.behavior.{direction}", errors)


def _validate_most(most: int, errors: Errors) -> None:
    if not features.changed("AutoscalerMaxReplicasIsRequired"):
        if most < 1:
            errors.append(invalid_value("spec.maxReplicas", most, "must be greater than 0"))
    elif most == 0:
        why = "must be set and greater than 0"
        errors.append(declared(required_value("spec.maxReplicas", why)))
    elif most < 0:
        why = "must be greater than or equal to 1"
        errors.append(invalid_value("spec.maxReplicas", most, why))


def _validate_metrics(spec: Obj, least: int | None, errors: Errors) -> None:
    percentage = spec.get("targetCPUUtilizationPercentage")
    if percentage is not None and percentage < 1:
        # Of autoscaling/v1, in the words of the version that it is converted to.
        path = "spec.metrics[0].resource.target.averageUtilization"
        errors.append(invalid_value(path, percentage, "must be greater than 0"))
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        _validate_metric(metric, f"spec.metrics[{index}]", errors)
    if least == 0 and not any(item.get("type") in ("Object", "External") for item in metrics):
        why = (
            "must specify at least one Object or External metric"
            " to support scaling to zero replicas"
        )
        errors.append(field_forbidden("spec.metrics", why))


def _validate_metric(metric: Obj, path: str, errors: Errors) -> None:
    kind = metric.get("type") or ""
    if not kind:
        errors.append(required_value(f"{path}.type", "must specify a metric source type"))
    key = _SOURCES.get(kind)
    if key is None:
        # Twice, as upstream once did: of no type, and of none that it has a source for.
        times = 1 if features.changed("MetricTypeIsToldOnce") else 2
        errors += [not_supported(f"{path}.type", kind, tuple(_SOURCES))] * times
        return
    source = metric.get(key)
    if source is None:
        why = "must populate information for the given metric source"
        errors.append(required_value(f"{path}.{key}", why))
        return
    if key in ("resource", "containerResource") and not source.get("name"):
        errors.append(required_value(f"{path}.{key}.name", "must specify a resource name"))
    target = source.get("target") or {}
    here = f"{path}.{key}.target"
    _validate_target(target, here, errors)
    if key in ("resource", "containerResource"):
        _validate_usage(target, here, errors)


def _validate_target(target: Obj, path: str, errors: Errors) -> None:
    kind = target.get("type") or ""
    if not kind:
        errors.append(required_value(f"{path}.type", "must specify a metric target type"))
    if kind not in ("AverageValue", "Utilization", "Value"):
        why = "must be either Utilization, Value, or AverageValue"
        errors.append(invalid_value(f"{path}.type", kind, why))
    percentage = target.get("averageUtilization")
    if percentage is not None and percentage < 1:
        errors.append(
            invalid_value(f"{path}.averageUtilization", percentage, "must be greater than 0")
        )


def _validate_usage(target: Obj, path: str, errors: Errors) -> None:
    """Of a resource: its average, as an amount or as a share of what was requested."""
    share, amount = target.get("averageUtilization"), target.get("averageValue")
    if share is None and amount is None:
        why = "must set either a target raw value or a target utilization"
        errors.append(required_value(f"{path}.averageUtilization", why))
    if share is not None and amount is not None:
        why = "may not set both a target raw value and a target utilization"
        errors.append(field_forbidden(f"{path}.averageValue", why))


def _validate_behaviour(rules: Obj, path: str, errors: Errors) -> None:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        why = "must be greater than or equal to zero"
        errors.append(invalid_value(f"{path}.stabilizationWindowSeconds", window, why))
    if window is not None and window > 3600:
        why = "must be less than or equal to 3600"
        errors.append(invalid_value(f"{path}.stabilizationWindowSeconds", window, why))
    select = rules.get("selectPolicy")
    validate_optional_choice(select, ("Disabled", "Max", "Min"), f"{path}.selectPolicy", errors)
    if rules.get("policies") == []:
        why = "must specify at least one Policy"
        errors.append(required_value(f"{path}.policies", why))
    for index, policy in enumerate(rules.get("policies") or ()):
        here = f"{path}.policies[{index}]"
        validate_choice(policy.get("type"), ("Percent", "Pods"), f"{here}.type", errors)
        for key, most in (("value", None), ("periodSeconds", 1800)):
            number = policy.get(key) or 0
            if number <= 0:
                why = "must be greater than zero"
                errors.append(invalid_value(f"{here}.{key}", number, why))
            elif most is not None and number > most:
                why = f"must be less than or equal to {most}"
                errors.append(invalid_value(f"{here}.{key}", number, why))


def validate_autoscaler_status(new: Obj, old: Obj, errors: Errors) -> None:
    keys = ("currentReplicas", "desiredReplicas")
    validate_counts(status_of(new), "status", keys, errors)


RULES = Rules(
    names.dns_subdomain,
    validate_autoscaler,
    validate_autoscaler_update,
    validate_autoscaler_status,
)
