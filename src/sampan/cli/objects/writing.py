"""Sending one object: create, replace, patch, with the options that all verbs share.

Job: from an object and flags to one request and its answer.
"""

from typing import Any

from sampan.api.objects import Obj
from sampan.cli.common_flags import change_cause
from sampan.cli.flags import Values
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.session import Session

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CHANGE_CAUSE = "kubernetes.io/change-cause"
CONTENT_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


def options(
    *, dry_run: str = "none", manager: str = "", validation: str = "", force: bool | None = None
) -> dict[str, str]:
    query = {}
    if dry_run == "server":
        query["dryRun"] = "All"
    if manager:
        query["fieldManager"] = manager
    if validation:
        query["fieldValidation"] = validation
    if force is not None:
        query["force"] = "true" if force else "false"
    return query


def create(
    session: Session, resource: ApiResource, namespace: str, obj: Obj, query: dict[str, str]
) -> Obj:
    return session.api.json("POST", resource.path(namespace), query, body=obj)


def get(session: Session, resource: ApiResource, namespace: str, name: str) -> Obj:
    return session.api.json("GET", resource.path(namespace, name))


def patch(
    session: Session,
    path: str,
    change: Any,
    kind: str,
    query: dict[str, str] | None = None,
) -> Obj:
    return session.api.json("PATCH", path, query, body=change, content_type=CONTENT_TYPES[kind])


def annotate(obj: Obj, annotations: dict[str, str]) -> Obj:
    meta = dict(obj.get("metadata") or {})
    meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
    return {**obj, "metadata": meta}


def noted(session: Session, values: Values, obj: Obj) -> Obj:
    """With what --save-config and --record say; what it was applied as is kept up to date."""
    if values["save-config"] or is_noted(obj):
        obj = with_last_applied(obj)
    return recorded(session, values, obj)


def recorded(session: Session, values: Values, obj: Obj) -> Obj:
    """With what --record says."""
    if not values["record"]:
        return obj
    return annotate(obj, {CHANGE_CAUSE: change_cause(session, values)})


def is_noted(obj: Obj) -> bool:
    """Whether it says already what it was applied as; then that is kept up to date."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(LAST_APPLIED))


def last_applied(obj: Obj, *, typed: bool = False) -> str:
    """The object as the annotation keeps it: JSON in one line, itself left out."""
    from sampan.cli.printers.json_text import compact

    meta = dict((obj.get("metadata") or {}).items())
    annotations = {
        key: value for key, value in (meta.get("annotations") or {}).items() if key != LAST_APPLIED
    }
    if typed:
        meta.pop("annotations", None)
        if annotations:
            meta["annotations"] = annotations
        from sampan.cli.printers.go_order import in_go_order

        return compact(in_go_order({**obj, "metadata": meta})) + "\n"
    meta["annotations"] = annotations
    return compact({**obj, "metadata": meta}, ordered=False) + "\n"


def with_last_applied(obj: Obj, *, typed: bool = False) -> Obj:
    return annotate(obj, {LAST_APPLIED: last_applied(obj, typed=typed)})
