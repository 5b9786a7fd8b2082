"""Where a gated pod may run: while it waits, its choice of nodes may be narrowed.

Job: what may change in the placement of a pod that scheduling gates still hold back.
Invariant: nothing that was asked for is taken away; requirements are only added.
"""

from typing import Any

from sampan.api.errors import FieldError, invalid_value
from sampan.api.objects import Obj

Errors = list[FieldError]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"


def validate_narrowing(rest: Obj, was: Obj, errors: Errors) -> None:
    """Judge the changes, then put the old placement back into `rest`, so that only what else
    differs is left in it."""
    now, before = rest.get("nodeSelector") or {}, was.get("nodeSelector") or {}
    if now != before:
        if any(now.get(key) != value for key, value in before.items()):
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid_value("spec.nodeSelector", now, why))
        put(rest, "nodeSelector", was.get("nodeSelector"))
    affinity, had = _node_affinity(rest), _node_affinity(was)
    if affinity != had:
        if had is not None:
            _validate_terms(_terms(affinity), _terms(had), errors)
        _restore(rest, was, had)


def put(obj: Obj, key: str, value: Any) -> None:
    if value is None:
        obj.pop(key, None)
    else:
        obj[key] = value


def _node_affinity(spec: Obj) -> Obj | None:
    affinity: Obj | None = (spec.get("affinity") or {}).get("nodeAffinity")
    return affinity


def _terms(affinity: Obj | None) -> list[Obj]:
    required = (affinity or {}).get(_REQUIRED) or {}
    return list(required.get("nodeSelectorTerms") or ())


def _validate_terms(new: list[Obj], old: list[Obj], errors: Errors) -> None:
    if not old:
        return
    if len(new) != len(old):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        errors.append(invalid_value(_TERMS, new, why))
        return
    for index, (term, before) in enumerate(zip(new, old, strict=True)):
        if not _has_only_additions(term, before):
            why = "only additions are allowed (no mutations or deletions)"
            errors.append(invalid_value(f"{_TERMS}[{index}]", term, why))


def _has_only_additions(new: Obj, old: Obj) -> bool:
    was_empty = not old.get("matchExpressions") and not old.get("matchFields")
    if was_empty and (new.get("matchExpressions") or new.get("matchFields")):
        return False  # it matched nothing before, and would match something now
    return all(
        item in (new.get(key) or ())
        for key in ("matchExpressions", "matchFields")
        for item in old.get(key) or ()
    )


def _restore(rest: Obj, was: Obj, had: Obj | None) -> None:
    affinity = dict(rest.get("affinity") or {})
    put(affinity, "nodeAffinity", had)
    put(rest, "affinity", affinity if affinity or was.get("affinity") is not None else None)
