"""Roles and bindings brought to what a file says: `auth reconcile`.

Job: what is missing, what is too much, and the object that has it right. Pure.
Invariant: nothing that is there is taken away, unless that is asked for.
"""

from typing import Any

from sampan.api.objects import Obj, annotations_of, copy_of
from sampan.core.fast_dataclass import dataclass

PROTECTED = "rbac.authorization.kubernetes.io/autoupdate"


@dataclass(frozen=True, slots=True)
class Reconciled:
    operation: str  # empty: nothing to do; create, update or recreate
    obj: Obj
    missing: list[Obj]  # rules or subjects
    extra: list[Obj]
    is_protected: bool = False


def role(existing: Obj | None, expected: Obj, *, removes: bool) -> Reconciled:
    if existing is None:
        return Reconciled("create", expected, expected.get("rules") or [], [])
    after = _with_metadata(existing, expected)
    operation = "update" if after != existing else ""
    own, wanted = existing.get("rules") or [], expected.get("rules") or []
    extra: list[Obj] = []
    if not (expected.get("aggregationRule") and existing.get("aggregationRule")):
        extra = uncovered(wanted, own)
    missing = uncovered(own, wanted)
    if missing and not removes:
        after["rules"], operation = [*own, *missing], "update"
    elif removes and (missing or extra):
        after["rules"], operation = wanted, "update"
    if _aggregate(after, existing, expected, removes=removes):
        operation = "update"
    return Reconciled(operation, after, missing, extra, _is_protected(existing))


def binding(existing: Obj | None, expected: Obj, *, removes: bool) -> Reconciled:
    if existing is None:
        return Reconciled("create", expected, expected.get("subjects") or [], [])
    is_protected = _is_protected(existing)
    if expected.get("roleRef") != existing.get("roleRef"):
        return Reconciled("recreate", expected, [], [], is_protected)
    after = _with_metadata(existing, expected)
    operation = "update" if after != existing else ""
    own, wanted = existing.get("subjects") or [], expected.get("subjects") or []
    missing, extra = _only_in(wanted, own), _only_in(own, wanted)
    if missing and not removes:
        after["subjects"], operation = [*own, *missing], "update"
    elif removes and (missing or extra):
        after["subjects"], operation = wanted, "update"
    return Reconciled(operation, after, missing, extra, is_protected)


def uncovered(owner: list[Obj], servant: list[Obj]) -> list[Obj]:
    """What of the servant's rules the owner's do not allow, each taken apart."""
    return [
        rule
        for whole in servant
        for rule in taken_apart(whole)
        if not any(_covers(own, rule) for own in owner)
    ]


def taken_apart(rule: Obj) -> list[Obj]:
    found: list[Obj] = []
    for group in rule.get("apiGroups") or []:
        for resource in rule.get("resources") or []:
            for verb in rule.get("verbs") or []:
                one = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames") or []
                found += [{**one, "resourceNames": [name]} for name in names] or [one]
    for url in rule.get("nonResourceURLs") or []:
        found += [{"nonResourceURLs": [url], "verbs": [verb]} for verb in rule.get("verbs") or []]
    return found


def _covers(owner: Obj, rule: Obj) -> bool:
    names, own_names = rule.get("resourceNames") or [], owner.get("resourceNames") or []
    return (
        _has_all(owner, rule, "verbs")
        and _has_all(owner, rule, "apiGroups")
        and all(_has_resource(owner, path) for path in rule.get("resources") or [])
        and (not own_names or (bool(names) and set(names) <= set(own_names)))
        and all(
            any(_has_url(own, url) for own in owner.get("nonResourceURLs") or [])
            for url in rule.get("nonResourceURLs") or []
        )
    )


def _has_all(owner: Obj, rule: Obj, field: str) -> bool:
    own = owner.get(field) or []
    return "*" in own or set(rule.get(field) or []) <= set(own)


def _has_resource(owner: Obj, path: str) -> bool:
    own = owner.get("resources") or []
    _, slash, subresource = path.partition("/")
    return "*" in own or path in own or (bool(slash) and f"*/{subresource}" in own)


def _has_url(own: str, url: str) -> bool:
    return own == url or (own.endswith("*") and url.startswith(own.rstrip("*")))


def _with_metadata(existing: Obj, expected: Obj) -> Obj:
    """Annotations and labels of both; those that are there win."""
    after: Obj = copy_of(existing)
    for field in ("annotations", "labels"):
        wanted = (expected.get("metadata") or {}).get(field) or {}
        own = existing["metadata"].get(field) or {}
        if wanted or own:
            after["metadata"][field] = {**wanted, **own}
    return after


def _aggregate(after: Obj, existing: Obj, expected: Obj, *, removes: bool) -> bool:
    own, wanted = existing.get("aggregationRule"), expected.get("aggregationRule")
    have, want = _selectors(own), _selectors(wanted)
    missing, extra = _only_in(want, have), _only_in(have, want)
    if wanted is None and own is not None:
        del after["aggregationRule"]
        return True
    if missing and not removes:
        after["aggregationRule"] = {**(own or {}), "clusterRoleSelectors": [*have, *missing]}
        return True
    if removes and (missing or extra):
        after["aggregationRule"] = wanted
        return True
    return False


def _selectors(rule: Any) -> list[Obj]:
    return list((rule or {}).get("clusterRoleSelectors") or [])


def _only_in(one: list[Obj], other: list[Obj]) -> list[Obj]:
    found: list[Obj] = []
    for item in one:
        if item not in other and item not in found:
            found.append(item)
    return found


def _is_protected(obj: Obj) -> bool:
    return bool(annotations_of(obj).get(PROTECTED) == "false")
