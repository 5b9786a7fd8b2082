"""Conversion between the versions of built-in kinds: served, stored, and the one of our rules.

Job: one pair of functions per kind whose versions have other fields; where they have the same, the
    name of the version is what changes.
Invariant: what is stored and read back in the version that it was written in is unchanged.
"""

from collections.abc import Callable
from typing import Any

import orjson

from sampan.api import device_versions
from sampan.api.defaults.autoscaling import METRICS_ANNOTATION as _METRICS
from sampan.api.device_versions import API_VERSION as DEVICES
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
_PROOF = ("pkixPublicKey", "proofOfPossession")
_NEVER_EMPTY = ("reportingController", "reportingInstance")  # they are in the core group


def to_stored(resource: Resource, obj: Obj) -> Obj:
    """A new object where something changes; the same one where nothing does."""
    if resource.has_versions:
        group, version = resource.stored_in
        return in_version(obj, f"{group}/{version}" if version else resource.api_version)
    pair = _CONVERSIONS.get((resource.group, resource.version, resource.kind))
    return obj if pair is None else pair[0](obj)


def from_stored(resource: Resource, obj: Obj) -> Obj:
    if resource.has_versions:
        return in_version(obj, resource.api_version)
    pair = _CONVERSIONS.get((resource.group, resource.version, resource.kind))
    return obj if pair is None else pair[1](obj)


def in_version(obj: Obj, api_version: str) -> Obj:
    """Of a kind that has several versions in its group."""
    own, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
    if own == api_version:
        return obj
    to_rules, _ = _OTHER_FIELDS.get((own, kind), _SAME)
    _, from_rules = _OTHER_FIELDS.get((api_version, kind), _SAME)
    return {**from_rules(to_rules(obj)), "apiVersion": api_version}


def as_rules_read(resource: Resource, obj: Obj) -> Obj:
    """With the fields that strategies and validation know: those of the newest version."""
    if not resource.has_versions:
        return obj
    return _OTHER_FIELDS.get((resource.api_version, resource.kind), _SAME)[0](obj)


def write_back(resource: Resource, obj: Obj, checked: Obj) -> None:
    """What they made of it, in the object's own version again."""
    if checked is not obj:
        made = _OTHER_FIELDS[resource.api_version, resource.kind][1](checked)
        obj.clear()
        obj.update(made)


def _event_to_core(event: Obj) -> Obj:
    return _rename(event, {new: old for old, new in _EVENT_NAMES}, "v1")


def _event_from_core(event: Obj) -> Obj:
    renamed = _rename(event, dict(_EVENT_NAMES), "events.k8s.io/v1")
    for key in _NEVER_EMPTY:
        if renamed.get(key) == "":
            del renamed[key]
    return renamed


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


def _same(obj: Obj) -> Obj:
    return obj


def _without_proof(request: Obj) -> Obj:
    """v1 knows keys in stub requests only."""
    spec = {key: value for key, value in (request.get("spec") or {}).items() if key not in _PROOF}
    return {**request, "spec": spec}


Pair = tuple[Callable[[Obj], Obj], Callable[[Obj], Obj]]
_SAME: Pair = (_same, _same)
# Versions that have other fields than the newest one: to its fields, and back.
_OTHER_FIELDS: dict[tuple[str, str], Pair] = {
    ("certificates.k8s.io/v1", "PodCertificateRequest"): (_same, _without_proof),
    (DEVICES, "ResourceClaim"): (device_versions.claim_to_v1, device_versions.claim_from_v1),
    (DEVICES, "ResourceClaimTemplate"): (
        device_versions.template_to_v1, device_versions.template_from_v1,
    ),
    (DEVICES, "ResourceSlice"): (device_versions.slice_to_v1, device_versions.slice_from_v1),
}  # fmt: skip

_CONVERSIONS: dict[tuple[str, str, str], Pair] = {
    ("events.k8s.io", "v1", "Event"): (_event_to_core, _event_from_core),
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): (_autoscaler_to_v2, _autoscaler_to_v1),
}
