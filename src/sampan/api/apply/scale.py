"""The Scale of what has replicas: an object of its own, with owners of its own.

Job: from an object to its Scale and back, managedFields included. Pure.
Invariant: who owns `spec.replicas` of the Scale owns it of the object, and nobody else does.
"""

from sampan.api.apply.field_sets import FieldSet, difference
from sampan.api.apply.managed_fields import identity, in_order
from sampan.api.objects import Obj, meta_of
from sampan.api.rules import selectors

SCALE_VERSION = "autoscaling/v1"
_REPLICAS: FieldSet = {"f:spec": {"f:replicas": {}}}
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
    return {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {key: meta[key] for key in _KEPT if key in meta},
        "spec": {"replicas": int(spec.get("replicas") or 0)} if spec.get("replicas") else {},
        "status": shown_status,
    }


def scale_entries(entries: list[Obj]) -> list[Obj]:
    """Of the Scale: those of the object that own the number of replicas."""
    return [
        {**one, "apiVersion": SCALE_VERSION, "fieldsV1": _REPLICAS}
        for one in entries
        if _owns_replicas(one)
    ]


def object_entries(before: list[Obj], of_scale: list[Obj], api_version: str) -> list[Obj]:
    """Of the object, after a write of its Scale has left these of the Scale."""
    left = {_who(one): one for one in of_scale}
    found = []
    for one in before:
        if not _owns_replicas(one) or left.pop(_who(one), None) is not None:
            found.append(one)
        elif rest := difference(one["fieldsV1"], _REPLICAS):
            found.append({**one, "fieldsV1": rest})
    new = [{**one, "apiVersion": api_version, "fieldsV1": _REPLICAS} for one in left.values()]
    return in_order([*found, *new])


def _owns_replicas(entry: Obj) -> bool:
    return "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})


def _who(entry: Obj) -> tuple[str, str, str]:
    """Whatever version it has written in: a Scale has but one."""
    manager, operation, _, subresource = identity(entry)
    return manager, operation, subresource
