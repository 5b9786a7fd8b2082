"""The RBAC authorizer: roles and bindings from the watch cache, compiled per user.

Job: say what a user may do; keep what was compiled until a role, or a binding of that user,
    changes.
Invariant: an answer never rests on a role or binding older than the watch cache.
Invariant: at most MOST users are remembered.
Owner: the API server's loop; `changed` is called by the watch cache in the step that changes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import field

from sampan.api.objects import Obj, name_of, namespace_of
from sampan.api.resources import Resource
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.bootstrap.objects import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
)
from sampan.apiserver.authz.chain import Attributes, Decision, UserRules
from sampan.apiserver.authz.grants import Grants
from sampan.core.fast_dataclass import dataclass

MOST = 4096
RBAC_KINDS = (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
Find = Callable[[Resource, str, str], Obj | None]
FindAll = Callable[[Resource], list[Obj]]
_Subject = tuple[str, str]  # (User or Group, name)
# → namespace, or "" for cluster role bindings → name → binding
_Bound = dict[_Subject, dict[str, dict[str, Obj]]]


@dataclass(slots=True)
class _OfUser:
    """What one user holds: everywhere, and in each namespace where it was asked for."""

    bindings: dict[str, list[Obj]]  # namespace, or "" for cluster role bindings
    everywhere: Grants
    inside: dict[str, Grants] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)  # namespace → roles not found


_NOBODY: dict[tuple[str, ...], _OfUser] = {}


class Rbac:
    def __init__(self, find: Find, find_all: FindAll) -> None:
        self._find, self._find_all = find, find_all
        self._bound: _Bound | None = None
        self._users: dict[str, dict[tuple[str, ...], _OfUser]] = {}  # by name, then by groups
        self._compiled = 0  # since all were forgotten: no fewer than there are
        self.on_change: Callable[[], None] = lambda: None  # who builds on our answers

    def changed(self) -> None:
        """A role has changed: what was compiled from it is forgotten."""
        self._users.clear()
        self.on_change()

    def reloaded(self) -> None:
        """Nothing that was known holds."""
        self._bound = None
        self.changed()

    def binding_changed(self, before: Obj | None, now: Obj | None) -> None:
        """It concerns those whom it names, or named."""
        subjects = set()
        for binding, put in ((before, False), (now, True)):
            if binding is not None:
                subjects |= _subjects_of(binding)
                if self._bound is not None:
                    _note(self._bound, binding, put)
        for kind, name in subjects:
            if kind == "User":
                self._users.pop(name, None)
            elif kind == "Group":
                self._forget_group(name)
        self.on_change()

    def _forget_group(self, group: str) -> None:
        for held in self._users.values():
            for groups in [groups for groups in held if group in groups]:
                del held[groups]

    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        held = self._of(attributes.user)
        if attributes.path:
            why = held.everywhere.path(attributes.verb, attributes.path)
        else:
            asked = (
                attributes.verb, attributes.group, attributes.resource, attributes.subresource,
                attributes.name,
            )  # fmt: skip
            why = held.everywhere.resource(*asked)
            if why is None and attributes.namespace:
                why = self._inside(attributes.user, held, attributes.namespace).resource(*asked)
        if why is not None:
            return Decision.ALLOW, why
        return Decision.NO_OPINION, _trouble(held, attributes.namespace)

    def rules(self, user: User, namespace: str) -> UserRules:
        held = self._of(user)
        found = [*held.everywhere.rules]
        if namespace:
            found += self._inside(user, held, namespace).rules
        trouble = _trouble(held, namespace)
        return UserRules(found, bool(trouble), trouble)

    def not_covered(self, user: User, namespace: str, rules: Iterable[Obj]) -> list[Obj]:
        """Those rules that the user does not hold all of."""
        held = self._of(user)
        both = held.everywhere
        if namespace:
            both = Grants()
            both.add(held.everywhere.rules, "")
            both.add(self._inside(user, held, namespace).rules, "")
        return [rule for rule in rules if not both.covers(rule)]

    def _of(self, user: User) -> _OfUser:
        held = self._users.get(user.name, _NOBODY).get(user.groups)
        if held is None:
            if self._compiled >= MOST:
                self._users.clear()
                self._compiled = 0
            self._compiled += 1
            held = self._users.setdefault(user.name, {})[user.groups] = self._compile(user)
        return held

    def _compile(self, user: User) -> _OfUser:
        if self._bound is None:
            self._bound = {}
            for kind in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
                for binding in self._find_all(kind):
                    _note(self._bound, binding, put=True)
        bindings: dict[str, list[Obj]] = {}
        for subject in (("User", user.name), *(("Group", group) for group in user.groups)):
            for namespace, found in self._bound.get(subject, {}).items():
                bindings.setdefault(namespace, []).extend(found[name] for name in sorted(found))
        held = _OfUser(bindings, Grants())
        self._fill(held, held.everywhere, user, "")
        return held

    def _inside(self, user: User, held: _OfUser, namespace: str) -> Grants:
        grants = held.inside.get(namespace)
        if grants is None:
            grants = held.inside[namespace] = Grants()
            self._fill(held, grants, user, namespace)
        return grants

    def _fill(self, held: _OfUser, grants: Grants, user: User, namespace: str) -> None:
        for binding in held.bindings.get(namespace, ()):
            role = binding.get("roleRef") or {}
            rules = self.rules_of(role, namespace)
            if rules is None:
                kind, name = str(role.get("kind")).lower(), role.get("name")
                missing = f'{kind}.{GROUP} "{name}" not found'
                held.missing.setdefault(namespace, []).append(missing)
                continue
            grants.add(rules, _why(binding, role, user))

    def rules_of(self, reference: Obj, namespace: str) -> list[Obj] | None:
        """Of the role that a binding in `namespace` names; None where there is none."""
        if reference.get("kind") == "ClusterRole":
            role = self._find(CLUSTER_ROLES, "", reference.get("name") or "")
        else:
            role = self._find(ROLES, namespace, reference.get("name") or "")
        return None if role is None else role.get("rules") or []


def _trouble(held: _OfUser, namespace: str) -> str:
    if not held.missing:
        return ""
    found = [*held.missing.get("", ())]
    if namespace:
        found += held.missing.get(namespace, ())
    if not found:
        return ""
    return f"RBAC: {found[0] if len(found) == 1 else '[' + ', '.join(found) + ']'}"


def _note(bound: _Bound, binding: Obj, put: bool) -> None:
    """Under each of its subjects; or no longer."""
    namespace, name = namespace_of(binding), name_of(binding)
    for subject in _subjects_of(binding):
        if put:
            bound.setdefault(subject, {}).setdefault(namespace, {})[name] = binding
            continue
        inside = bound.get(subject, {})
        inside.get(namespace, {}).pop(name, None)
        if not inside.get(namespace):
            inside.pop(namespace, None)
        if not inside:
            bound.pop(subject, None)


def _subjects_of(binding: Obj) -> set[_Subject]:
    namespace = namespace_of(binding)
    return {_key(subject, namespace) for subject in binding.get("subjects") or ()}


def _key(subject: Obj, namespace: str) -> _Subject:
    kind, name = subject.get("kind") or "", subject.get("name") or ""
    if kind != "ServiceAccount":
        return kind, name
    of = subject.get("namespace") or namespace
    return "User", f"system:serviceaccount:{of}:{name}" if of else ""


def _why(binding: Obj, role: Obj, user: User) -> str:
    """As upstream words it in reviews and audit annotations."""
    namespace = namespace_of(binding)
    which = f"{namespace}/{name_of(binding)}" if namespace else name_of(binding)
    return (
        f'RBAC: allowed by {binding.get("kind")} "{which}" of {role.get("kind")} '
        f'"{role.get("name")}" to {_applied_to(binding, user)}'
    )


def _applied_to(binding: Obj, user: User) -> str:
    for subject in binding.get("subjects") or ():
        kind, name = _key(subject, namespace_of(binding))
        if (kind == "User" and name == user.name) or (kind == "Group" and name in user.groups):
            if subject.get("kind") == "ServiceAccount":
                of = subject.get("namespace") or namespace_of(binding)
                return f'ServiceAccount "{subject.get("name")}/{of}"'
            return f'{kind} "{name}"'
    return f'User "{user.name}"'
