"""Objects as kubectl's Go structs hold them: what a struct lacks goes, its zeros come.

Job: check an object against the published types, and put the empties that Go always writes.
"""

import functools
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.api.schema.published import Schema
from sampan.cli.errors import CliError


@functools.cache
def schema() -> Schema:
    return Schema.load()


# Groups that the published types have and kubectl's scheme has not.
_FOREIGN = ("apiextensions.k8s.io", "apiregistration.k8s.io")


def is_registered(version: str, kind: str) -> bool:
    """Whether kubectl has a Go type for it."""
    if version.partition("/")[0] in _FOREIGN:
        return False
    return schema().type_of(version, kind) is not None


def unregistered(version: str, kind: str) -> CliError:
    return CliError(
        f'no kind "{kind}" is registered for version "{version}" in scheme '
        '"k8s.io/kubectl/pkg/scheme/scheme.go:28"'
    )


def decode(obj: Any) -> Obj:
    """The object without unknown fields; refused where a type does not fit."""
    if not isinstance(obj, dict):
        kind = {list: "array", str: "string", bool: "bool"}.get(type(obj), "number")
        raise CliError(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go "
            'value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind '
            'string "json:\\"kind,omitempty\\"" }'
        )
    version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
    if not is_registered(version, kind):
        raise unregistered(version, kind)
    try:
        checked = schema().check(version, kind, obj).obj
    except ApiError as error:
        raise CliError(error.message.split(": ", 1)[-1]) from error
    meta = checked.get("metadata")
    if isinstance(meta, dict):
        empty = [key for key in ("labels", "annotations") if meta.get(key) == {}]
        checked = {**checked, "metadata": {k: v for k, v in meta.items() if k not in empty}}
    if kind == "Pod" and (obj.get("spec") or {}).get("containers") == []:
        # A list that a patch emptied is empty; one that was never there is null.
        checked = {**checked, "spec": {**checked["spec"], "containers": []}}
    return with_zeros(checked)


def with_zeros(obj: Obj) -> Obj:
    kind = obj.get("kind")
    if kind == "Pod":
        obj = {**obj, "spec": _pod_spec(obj.get("spec") or {}), "status": obj.get("status") or {}}
    elif kind == "Deployment":
        spec = dict(obj.get("spec") or {})
        spec.setdefault("selector", None)
        spec.setdefault("strategy", {})
        spec["template"] = _template(spec.get("template") or {})
        obj = {**obj, "spec": spec, "status": obj.get("status") or {}}
    elif kind == "Service":
        obj = {**obj, "spec": obj.get("spec") or {}}
        obj["status"] = obj.get("status") or {"loadBalancer": {}}
    return obj


def _template(template: Obj) -> Obj:
    return {
        "metadata": template.get("metadata") or {},
        "spec": _pod_spec(template.get("spec") or {}),
    }


def _pod_spec(spec: Obj) -> Obj:
    spec = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = [
                {**item, "resources": item.get("resources") or {}} for item in spec[field]
            ]
    spec.setdefault("containers", None)
    return spec
