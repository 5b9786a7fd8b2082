"""managedFields of the scale subresource.

Job: from an object to its Scale and back, managedFields included. Pure.
Invariant: who owns `spec.replicas` of the Scale owns it of the object, and nobody else does.
"""

from typing import Any

from sampan.api.apply.field_sets import FieldSet, difference
from sampan.api.apply.managed_fields import identity, in_order
from sampan.api.custom.custom_version import ScalePaths
from sampan.api.errors import InternalError
from sampan.api.objects import Obj, meta_of
from sampan.api.rules import selectors

SCALE_VERSION = "autoscaling/v1"
REPLICAS: FieldSet = {"f:spec": {"f:replicas": {}}}
_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(obj: Obj) -> Obj:
    meta, spec, status = meta_of(obj), obj.get("spec") or {}, obj.get("status") or {}
    selector = spec.get("selector") or {}
    if "matchLabels" in selector or "matchExpressions" in selector:
        text = str(selectors.from_object(selector))
    else:
        text = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    shown_status: Obj = {"replicas": int(status.get("replicas") or 0)}
    if text:
        shown_status["selector"] = text
    return _scale(meta, int(spec.get("replicas") or 0), shown_status)


def _scale(meta: Obj, replicas: int, status: Obj) -> Obj:
    return {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {key: meta[key] for key in _KEPT if key in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def custom_scale_of(obj: Obj, paths: ScalePaths) -> Obj:
    """Of a custom kind, whose definition says where the numbers are. Raises InternalError."""
    replicas = value_at(obj, paths.spec)
    if not isinstance(replicas, int):
        named = "." + ".".join(paths.spec)
        why = f'the spec replicas field "{named}" does not exist'
        raise InternalError(
            f"Internal error occurred: {why}", details={"causes": [{"message": why}]}
        )
    there = value_at(obj, paths.status)
    status: Obj = {"replicas": there if isinstance(there, int) else 0}
    selector = value_at(obj, paths.selector) if paths.selector else None
    if isinstance(selector, str) and selector:
        status["selector"] = selector
    return _scale(meta_of(obj), replicas, status)


def value_at(obj: Obj, path: tuple[str, ...]) -> Any:
    value: Any = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def with_replicas(obj: Obj, path: tuple[str, ...], replicas: int) -> Obj:
    """A copy; only what leads to the number is its own."""
    step, *rest = path
    if not rest:
        return {**obj, step: replicas}
    inner = obj.get(step)
    return {
        **obj,
        step: with_replicas(inner if isinstance(inner, dict) else {}, (*rest,), replicas),
    }


def owned_at(path: tuple[str, ...]) -> FieldSet:
    """The set with this one field."""
    found: FieldSet = {}
    for step in reversed(path):
        found = {f"f:{step}": found}
    return found


def scale_entries(entries: list[Obj], replicas: FieldSet = REPLICAS) -> list[Obj]:
    """Of the Scale: those of the object that own the number of replicas."""
    return [
        {**entry, "apiVersion": SCALE_VERSION, "fieldsV1": REPLICAS}
        for entry in entries
        if _owns(entry, replicas)
    ]


def object_entries(
    before: list[Obj], of_scale: list[Obj], api_version: str, replicas: FieldSet = REPLICAS
) -> list[Obj]:
    """Of the object, after a write of its Scale has left these of the Scale. As upstream: an
    updater is known by the version in which it wrote, and that of a Scale is another; so what it
    still owns of a Scale is an entry of its own, without a time."""
    left = {identity(item): item for item in of_scale}
    found = []
    for item in before:
        if not _owns(item, replicas) or left.pop(identity(item), None) is not None:
            found.append(item)
        elif rest := difference(item["fieldsV1"], replicas):
            found.append({**item, "fieldsV1": rest})
    for item in left.values():
        new = {**item, "apiVersion": api_version, "fieldsV1": replicas}
        new.pop("time", None)
        found.append(new)
    return in_order(found)


def _owns(entry: Obj, replicas: FieldSet) -> bool:
    fields, wanted = entry.get("fieldsV1") or {}, replicas
    while wanted:
        ((label, wanted),) = wanted.items()
        if label not in fields:
            return False
        fields = fields[label]
    return True
