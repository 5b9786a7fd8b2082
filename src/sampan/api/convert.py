"""Conversion between the served and the stored version of built-in kinds.

Job: one pair of functions per kind that is served in two versions or groups; identity elsewhere.
Invariant: what is stored and read back in the version that it was written in is unchanged.
"""

from collections.abc import Callable
from typing import Any

import orjson

from sampan.api.defaults.autoscaling import METRICS_ANNOTATION as _METRICS
from sampan.api.objects import Obj, annotations_of
from sampan.api.resources import Resource

# What autoscaling/v1 has no field for travels in these annotations.
_CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
_BEHAVIOUR = "autoscaling.alpha.kubernetes.io/behavior"
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"

# (core, events.k8s.io): the fields that have two names.
_EVENT_NAMES = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)


def to_stored(resource: Resource, obj: Obj) -> Obj:
    """A new object where something changes; the same one where nothing does."""
    pair = _CONVERSIONS.get((resource.group, resource.version, resource.kind))
    return obj if pair is None else pair[0](obj)


def from_stored(resource: Resource, obj: Obj) -> Obj:
    pair = _CONVERSIONS.get((resource.group, resource.version, resource.kind))
    return obj if pair is None else pair[1](obj)


def _event_to_core(event: Obj) -> Obj:
    return _rename(event, {new: old for old, new in _EVENT_NAMES}, "v1")


def _event_from_core(event: Obj) -> Obj:
    return _rename(event, dict(_EVENT_NAMES), "events.k8s.io/v1")


def _rename(obj: Obj, names: dict[str, str], api_version: str) -> Obj:
    renamed = {names.get(key, key): value for key, value in obj.items()}
    renamed["apiVersion"] = api_version
    return renamed


def _autoscaler_to_v2(old: Obj) -> Obj:
    spec, status = dict(old.get("spec") or {}), dict(old.get("status") or {})
    carried = annotations_of(old)
    metrics: list[Obj] = []
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        metrics.append(_cpu("target", {"type": "Utilization", "averageUtilization": percent}))
    metrics += _carried_list(carried.get(_METRICS))
    if metrics:
        spec["metrics"] = metrics
    behaviour = _carried_dict(carried.get(_BEHAVIOUR))
    if behaviour:
        spec["behavior"] = behaviour
    current: list[Obj] = []
    now = status.pop("currentCPUUtilizationPercentage", None)
    if now is not None:
        current.append(_cpu("current", {"averageUtilization": now}))
    current += _carried_list(carried.get(_CURRENT_METRICS))
    if current:
        status["currentMetrics"] = current
    conditions = _carried_list(carried.get(_CONDITIONS))
    if conditions:
        status["conditions"] = conditions
    kept = {key: value for key, value in carried.items() if key not in _CARRIED}
    return _autoscaler(old, "autoscaling/v2", spec, status, kept)


def _autoscaler_to_v1(new: Obj) -> Obj:
    spec, status = dict(new.get("spec") or {}), dict(new.get("status") or {})
    carried = dict(annotations_of(new))
    metrics = list(spec.pop("metrics", None) or ())
    goal = _first_cpu(metrics, "target")
    if goal is not None:
        spec["targetCPUUtilizationPercentage"] = goal["resource"]["target"]["averageUtilization"]
        metrics.remove(goal)
    current = list(status.pop("currentMetrics", None) or ())
    now = _first_cpu(current, "current")
    if now is not None:
        share = now["resource"]["current"]["averageUtilization"]
        status["currentCPUUtilizationPercentage"] = share
        current.remove(now)
    extras = (
        (_METRICS, metrics),
        (_BEHAVIOUR, spec.pop("behavior", None)),
        (_CURRENT_METRICS, current),
        (_CONDITIONS, status.pop("conditions", None)),
    )
    for key, value in extras:
        if value:
            carried[key] = orjson.dumps(value).decode()
    return _autoscaler(new, "autoscaling/v1", spec, status, carried)


_CARRIED = (_METRICS, _CURRENT_METRICS, _BEHAVIOUR, _CONDITIONS)


def _cpu(key: str, value: Obj) -> Obj:
    return {"type": "Resource", "resource": {"name": "cpu", key: value}}


def _first_cpu(metrics: list[Obj], key: str) -> Obj | None:
    """The one metric that autoscaling/v1 has a field for."""
    for metric in metrics:
        resource = metric.get("resource") or {}
        value = resource.get(key) or {}
        known = set(value) <= {"type", "averageUtilization"}
        if resource.get("name") == "cpu" and value.get("averageUtilization") is not None and known:
            return metric
    return None


def _autoscaler(
    obj: Obj, api_version: str, spec: Obj, status: Obj, annotations: dict[str, str]
) -> Obj:
    meta = dict(obj.get("metadata") or {})
    meta.pop("annotations", None)
    if annotations:
        meta["annotations"] = annotations
    converted = {**obj, "apiVersion": api_version, "metadata": meta, "spec": spec}
    if status or "status" in obj:
        converted["status"] = status
    return converted


def _carried_json(text: str | None) -> Any:
    """What an annotation carries; nothing where somebody has spoilt it."""
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None


def _carried_list(text: str | None) -> list[Obj]:
    found = _carried_json(text)
    return (
        [match_ for match_ in found if isinstance(match_, dict)] if isinstance(found, list) else []
    )


def _carried_dict(text: str | None) -> Obj:
    found = _carried_json(text)
    return found if isinstance(found, dict) else {}


_CONVERSIONS: dict[tuple[str, str, str], tuple[Callable[[Obj], Obj], Callable[[Obj], Obj]]] = {
    ("events.k8s.io", "v1", "Event"): (_event_to_core, _event_from_core),
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): (_autoscaler_to_v2, _autoscaler_to_v1),
}
