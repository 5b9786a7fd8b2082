"""Names of a CustomResourceDefinition: accepted or in conflict, and its conditions. Pure.

Job: a definition and the others of its group → its status.
Invariant: a name that another definition holds is not given away.
Invariant: a definition that is Established stays so.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, annotations_of, meta_of, name_of
from sampan.api.rules.conditions import is_true, with_condition

APPROVED = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")


def wanted_status(definition: Obj, others: Iterable[Obj], now: float) -> Obj:
    """The status that the definition should have; its own where nothing changes."""
    spec, status = definition["spec"], definition.get("status") or {}
    accepted, names_condition = _accept(spec["names"], status, _take(definition, others))
    conditions = list(status.get("conditions") or ())
    approval = _approval(definition)
    if approval is not None:
        conditions = with_condition(conditions, approval, now)
    conditions = with_condition(conditions, names_condition, now)
    conditions = with_condition(conditions, _establish(definition, names_condition), now)
    return {**status, "conditions": conditions, "acceptedNames": accepted}


def is_protected(group: str) -> bool:
    return any(group == item or group.endswith(f".{item}") for item in _PROTECTED)


def _take(definition: Obj, others: Iterable[Obj]) -> tuple[set[str], set[str]]:
    """(names of resources, names of kinds) that other definitions of the group have."""
    resources: set[str] = set()
    kinds: set[str] = set()
    group = definition["spec"]["group"]
    for other in others:
        if other["spec"]["group"] != group or name_of(other) == name_of(definition):
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {names.get("plural") or "", names.get("singular") or ""}
        resources |= set(names.get("shortNames") or ())
        kinds |= {names.get("kind") or "", names.get("listKind") or ""}
    return resources - {""}, kinds - {""}


def _clash(value: str | list[str] | None, held: set[str]) -> str:
    """What to say of names that another definition has; empty: none of them."""
    listed = value if isinstance(value, list) else [value] if value else []
    clashes = [f'"{name}" is already in use' for name in listed if name in held]
    return f"[{', '.join(clashes)}]" if len(clashes) > 1 else "".join(clashes)


def _accept(asked: Obj, status: Obj, taken: tuple[set[str], set[str]]) -> tuple[Obj, Obj]:
    """The names, and the condition about them: of several conflicts it tells the last."""
    resources, kinds = taken
    before = status.get("acceptedNames") or {}
    names = {"plural": before.get("plural") or "", "kind": before.get("kind") or ""}
    names |= {key: value for key, value in before.items() if value}
    trouble: tuple[str, str] | None = None
    for key, reason, held in (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        value = asked.get(key)
        clash = _clash(value, held)
        if clash:
            trouble = (reason, clash)
        elif value:
            names[key] = value
        else:
            names.pop(key, None)
    if asked.get("categories"):
        names["categories"] = asked["categories"]
    else:
        names.pop("categories", None)
    if trouble is None:
        return names, _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
    return names, _condition("NamesAccepted", "False", *trouble)


def _establish(definition: Obj, names_condition: Obj) -> Obj:
    if is_true(definition, "Established") or names_condition["status"] == "True":
        why = "the initial names have been accepted"
        return _condition("Established", "True", "InitialNamesAccepted", why)
    return _condition("Established", "False", "NotAccepted", "not all names are accepted")


def _approval(definition: Obj) -> Obj | None:
    """Of groups that are the project's own; None for everybody else's."""
    if not is_protected(definition["spec"]["group"]):
        return None
    kind = "KubernetesAPIApprovalPolicyConformant"
    text = annotations_of(definition).get(APPROVED) or ""
    if not text:
        why = (
            f'protected groups must have approval annotation "{APPROVED}", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        return _condition(kind, "False", "MissingAnnotation", why)
    if text.startswith("unapproved"):
        return _condition(kind, "False", "UnapprovedAnnotation", f'not approved: "{text}"')
    return _condition(kind, "True", "ApprovedAnnotation", f"approved in {text}")


def _condition(kind: str, status: str, reason: str, message: str) -> Obj:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def told(definition: Obj, condition: tuple[str, str, str, str], now: float) -> Obj:
    """A copy whose status says so."""
    status = definition.get("status") or {}
    conditions = with_condition(status.get("conditions") or (), _condition(*condition), now)
    return {
        **definition,
        "metadata": dict(meta_of(definition)),
        "status": {**status, "conditions": conditions},
    }
