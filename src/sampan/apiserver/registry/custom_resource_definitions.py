"""CustomResourceDefinitions: their strategy.

Job: the status they start with, stored versions, the first step of their deletion. Pure.
Invariant: a version that objects may be stored in stays in status.storedVersions.
"""

from sampan.api.objects import Obj, meta_of, time_text
from sampan.apiserver.registry.strategy import Strategy

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_TERMINATING = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": (
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    ),
}


def storage_version(definition: Obj) -> str:
    versions = (definition.get("spec") or {}).get("versions") or ()
    return next((version.get("name") or "" for version in versions if version.get("storage")), "")


def prepare_create(definition: Obj) -> None:
    stored = storage_version(definition)
    definition["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [stored] if stored else None,
    }
    _drop_unused(definition)


def prepare_update(new: Obj, old: Obj) -> None:
    stored = storage_version(new)
    status = new.get("status") or {}
    known = status.get("storedVersions") or []
    if stored and stored not in known:
        new["status"] = {**status, "storedVersions": [*known, stored]}
    _drop_unused(new)


def prepare_status(new: Obj, _old: Obj) -> None:
    """Objects are stored in some version, whatever the caller says."""
    status = new.get("status") or {}
    if not status.get("storedVersions"):
        new["status"] = {**status, "storedVersions": [storage_version(new)]}


def _drop_unused(definition: Obj) -> None:
    spec = definition.get("spec")
    if isinstance(spec, dict) and spec.get("preserveUnknownFields") is False:
        del spec["preserveUnknownFields"]


def terminating(definition: Obj, now: float) -> Obj | None:
    """With a finalizer, so that its objects go before it; None where that has happened."""
    meta = meta_of(definition)
    if meta.get("deletionTimestamp"):
        if meta.get("deletionGracePeriodSeconds") is not None:
            return None
        return {**definition, "metadata": {**meta, "deletionGracePeriodSeconds": 0}}
    finalizers = list(meta.get("finalizers") or ())
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    status = definition.get("status") or {}
    conditions = [
        condition
        for condition in status.get("conditions") or ()
        if condition["type"] != "Terminating"
    ]
    told = {
        "type": _TERMINATING["type"],
        "status": _TERMINATING["status"],
        "lastTransitionTime": time_text(now),
        "reason": _TERMINATING["reason"],
        "message": _TERMINATING["message"],
    }
    return {
        **definition,
        "metadata": {**meta, "deletionTimestamp": time_text(now), "finalizers": finalizers},
        "status": {**status, "conditions": [*conditions, told]},
    }


STRATEGY = Strategy(
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=prepare_status,
    terminating=terminating,
    has_generation=True,
)
