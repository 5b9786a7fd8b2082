"""Write-path rules: names from the URL, kept status, storage version. Pure.

Job: names and namespace as the URL has them; what a write leaves as it was; the version that a call
    speaks; the Status that tells of a deletion.
"""

from collections.abc import Sequence

from sampan.api import convert
from sampan.api.calls import Call, Item
from sampan.api.errors import ApiError, BadRequest, FieldError, invalid
from sampan.api.objects import Obj, copy_of, name_of, uid_of
from sampan.api.resources import Resource
from sampan.api.schema.published import Schema
from sampan.apiserver.registry.custom_resources import shown_item

_NO_METADATA = ("annotations", "finalizers", "labels", "ownerReferences")
# Metadata that a write of the status does not change, by kind: upstream's strategies reset it.
NOT_BY_STATUS = {
    "apiservices.apiregistration.k8s.io": _NO_METADATA,
    "deployments.apps": ("labels",),
    "flowschemas.flowcontrol.apiserver.k8s.io": _NO_METADATA,
    "podcertificaterequests.certificates.k8s.io": _NO_METADATA,
    "pods": ("deletionTimestamp", "ownerReferences"),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _NO_METADATA,
    "resourceclaims.resource.k8s.io": _NO_METADATA,
    "servicecidrs.networking.k8s.io": _NO_METADATA,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _NO_METADATA,
    "volumeattachments.storage.k8s.io": _NO_METADATA,
}
SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def in_version_of(resource: Resource, item: Item) -> Obj:
    """The item in the version that the call speaks; read-only. Raises NotConverted."""
    if resource.custom is not None:
        return shown_item(resource, item).obj
    if resource.stored_in == ("", ""):
        return item.obj
    return convert.from_stored(resource, item.obj)


def as_stored(resource: Resource, obj: Obj) -> Obj:
    return obj if resource.stored_in == ("", "") else convert.to_stored(resource, obj)


def refuse(
    resource: Resource, obj: Obj, causes: Sequence[FieldError], warnings: Sequence[str] = ()
) -> None:
    if causes:
        group = "" if resource.kind == "Event" else resource.group  # of both groups: the core's
        error = invalid(resource.kind, group, name_of(obj), causes)
        error.warnings = list(warnings)
        raise error


class WarningsCarried:
    """What was found worth a warning is told with a refusal too."""

    __slots__ = ("_warnings",)

    def __init__(self, warnings: list[str]) -> None:
        self._warnings = warnings

    def __enter__(self) -> None:
        """Nothing is known yet."""

    def __exit__(self, _kind: object, error: object, _traceback: object) -> None:
        if isinstance(error, ApiError):
            error.warnings = [*dict.fromkeys(self._warnings), *error.warnings]


def check_namespace(call: Call, meta: Obj) -> None:
    if not call.resource.namespaced:
        meta.pop("namespace", None)
        return
    if meta.get("namespace", call.namespace) not in (call.namespace, ""):
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["namespace"] = call.namespace


def check_names(call: Call, obj: Obj) -> None:
    """Of an object that is put, patched or applied: it must say which one it is, lest half an
    object overwrites a whole one. Raises BadRequest."""
    meta = obj.setdefault("metadata", {})
    check_namespace(call, meta)
    if not meta.get("name"):
        raise BadRequest(
            f"the name of the object ({call.name} based on URL) was undeterminable: name must be "
            "provided"
        )
    if meta["name"] != call.name:
        raise BadRequest(
            f"the name of the object ({meta['name']}) does not match the name on the URL "
            f"({call.name})"
        )


def go_form(schema: Schema, resource: Resource, obj: Obj) -> Obj:
    """The object as Go would write it, once it has decoded it; as it is where its type is not
    known."""
    if schema.name_of(resource.api_version, resource.kind) is None:
        return obj
    return {
        **schema.check(resource.api_version, resource.kind, obj).obj,
        "apiVersion": resource.api_version,
        "kind": resource.kind,
    }


def clear_status(schema: Schema, resource: Resource, obj: Obj) -> None:
    """A status is nothing that a create can set."""
    known = schema.name_of(resource.api_version, resource.kind) is not None
    empty = schema.zero(resource.api_version, resource.kind).get("status") if known else None
    if empty is None:
        obj.pop("status", None)
    else:
        obj["status"] = copy_of(empty)


def keep_status(new: Obj, old: Obj) -> None:
    if "status" in old:
        new["status"] = old["status"]
    else:
        new.pop("status", None)


def keep_all_but_status(resource: Resource, new: Obj, old: Obj) -> None:
    for key in [*new]:
        if key not in ("apiVersion", "kind", "metadata", "status") and key not in old:
            del new[key]
    for key, value in old.items():
        if key not in ("metadata", "status"):
            new[key] = value
    meta, before = new["metadata"], old["metadata"]
    for key in NOT_BY_STATUS.get(resource.group_resource, ()):
        if key in before:
            meta[key] = before[key]
        else:
            meta.pop(key, None)


def keep_custom_but_status(resource: Resource, new: Obj, old: Obj) -> None:
    """Of a custom kind: its metadata too, but for who owns what."""
    keep_all_but_status(resource, new, old)
    entries = new["metadata"].get("managedFields")
    new["metadata"] = {**old["metadata"]}
    if entries is None:
        new["metadata"].pop("managedFields", None)
    else:
        new["metadata"]["managedFields"] = entries


def deleted_status(resource: Resource, obj: Obj) -> Obj:
    details: Obj = {"name": name_of(obj)}
    if resource.group:
        details["group"] = resource.group
    details |= {"kind": resource.plural, "uid": uid_of(obj)}
    return {**SUCCESS, "details": details}
