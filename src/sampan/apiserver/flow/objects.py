"""The flow schemas and priority levels that every cluster has. Pure.

Job: upstream's mandatory and suggested objects, as objects.
"""

from sampan.api.objects import Obj, time_text
from sampan.api.resources import Resource, by_kind
from sampan.api.versioned_data import versioned_data

GROUP = "flowcontrol.apiserver.k8s.io"
MANDATORY = frozenset({"exempt", "catch-all"})
_AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"


def _row(kind: str) -> Resource:
    found = by_kind(f"{GROUP}/v1", kind)
    assert found is not None, kind
    return found


SCHEMAS, LEVELS = _row("FlowSchema"), _row("PriorityLevelConfiguration")


def flow_objects(now: float) -> list[tuple[Resource, Obj]]:
    """Of data/flow_control.json. Fresh: the caller's to change."""
    data = versioned_data("flow_control")
    moment = time_text(now)
    return [
        *((LEVELS, _object(LEVELS, name, spec)) for name, spec in data["priorityLevels"].items()),
        *((SCHEMAS, _schema(name, spec, moment)) for name, spec in data["flowSchemas"].items()),
    ]


def reconcile(found: Obj, wanted: Obj) -> Obj | None:
    """As upstream: mandatory ones are put right, suggested ones unless their annotation says no;
    None: nothing to do."""
    name = found["metadata"]["name"]
    if name == "exempt" and (found.get("spec") or {}).get("exempt"):
        wanted = {**wanted, "spec": {**wanted["spec"], "exempt": found["spec"]["exempt"]}}
    auto = (found["metadata"].get("annotations") or {}).get(_AUTOUPDATE, "true") == "true"
    if found.get("spec") == wanted["spec"] or not (name in MANDATORY or auto):
        return None
    return {**found, "spec": wanted["spec"]}


def _object(resource: Resource, name: str, spec: Obj) -> Obj:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "annotations": {_AUTOUPDATE: "true"}},
        "spec": spec,
    }


def _schema(name: str, spec: Obj, now: str) -> Obj:
    status = {"conditions": [dangling(level_of(spec), True, now)]}
    return {**_object(SCHEMAS, name, spec), "status": status}


def level_of(spec: Obj) -> str:
    """The level that a schema's spec leads to."""
    return str((spec.get("priorityLevelConfiguration") or {}).get("name") or "")


def dangling(level: str, exists: bool, now: str) -> Obj:
    """What a schema says of its level."""
    which = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    return {
        "type": "Dangling",
        "status": "False" if exists else "True",
        "reason": "Found" if exists else "NotFound",
        "message": f"{which} {'and it exists' if exists else 'but there is no such object'}",
        "lastTransitionTime": now,
    }
