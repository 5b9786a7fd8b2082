"""RBAC escalation check: roles and bindings grant only what their writer holds.

Job: refuse a role with rules, or a binding to a role, beyond what its writer may do, unless the
    writer has the verb `escalate` or `bind`. Not to be switched off: part of the kinds themselves.
Invariant: only a change of nothing but owner references and finalizers goes unchecked, so that
    garbage collection can go on: a label alone may hand a role's rules on, where another role
    gathers it.
"""

from sampan.api.errors import ApiError, forbidden, not_found
from sampan.api.objects import Obj, meta_of, name_of
from sampan.api.resources import Resource
from sampan.apiserver.admission.builtin.gc_fields import is_for_garbage_collection
from sampan.apiserver.admission.chain import UPDATE, Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.authz.bootstrap.objects import GROUP
from sampan.apiserver.authz.chain import Attributes as Asked
from sampan.apiserver.authz.chain import Authorization
from sampan.apiserver.authz.rbac import Rbac

_EVERYTHING: list[Obj] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]


def plugin(initializer: PluginInitializer) -> Steps:
    rbac, authorization = initializer.rbac, initializer.authorization

    async def check(attributes: Attributes) -> None:
        new, old = attributes.obj, attributes.old
        assert new is not None
        if MASTERS in attributes.user.groups or is_for_garbage_collection(new, old):
            return
        if "roleRef" in new:
            await _check_binding(rbac, authorization, attributes, new)
        else:
            await _check_role(rbac, authorization, attributes, new)

    return Steps(validate=check)


async def _check_role(
    rbac: Rbac, authorization: Authorization, attributes: Attributes, role: Obj
) -> None:
    resource = attributes.resource
    # As upstream: what is being created has no name yet that a rule could speak of.
    name = name_of(role) if attributes.operation == UPDATE else ""
    asked = Asked(
        attributes.user, "escalate", GROUP, resource.plural, "", attributes.namespace, name
    )
    if (await authorization.decide(asked))[0]:
        return
    _refuse_beyond(rbac, attributes, role.get("rules") or [])
    gathers = role.get("aggregationRule") or (attributes.old or {}).get("aggregationRule")
    if gathers and rbac.not_covered(attributes.user, "", _EVERYTHING):
        why = "must have cluster-admin privileges to use an aggregationRule"
        raise forbidden(resource.plural, GROUP, name_of(role), why)


async def _check_binding(
    rbac: Rbac, authorization: Authorization, attributes: Attributes, binding: Obj
) -> None:
    reference, namespace = binding.get("roleRef") or {}, attributes.namespace
    plural = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
    asked = Asked(
        attributes.user, "bind", GROUP, plural, "", namespace, reference.get("name") or ""
    )
    if (await authorization.decide(asked))[0]:
        return
    rules = rbac.rules_of(reference, namespace)
    if rules is None:
        raise not_found(plural, GROUP, reference.get("name") or "")
    _refuse_beyond(rbac, attributes, rules)


def _refuse_beyond(rbac: Rbac, attributes: Attributes, rules: list[Obj]) -> None:
    beyond = rbac.not_covered(attributes.user, attributes.namespace, rules)
    if beyond:
        raise _refusal(attributes.resource, attributes.obj or {}, attributes.user, beyond)


def _refusal(resource: Resource, obj: Obj, user: User, beyond: list[Obj]) -> ApiError:
    groups = " ".join(f'"{group}"' for group in user.groups)
    shown = "\n".join(_rule_text(item) for item in beyond)
    why = (
        f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not '
        f"currently held:\n{shown}"
    )
    name = name_of(obj) or meta_of(obj).get("generateName", "")
    return forbidden(resource.plural, resource.group, name, why)


def _rule_text(rule: Obj) -> str:
    """As upstream's CompactString."""
    clauses = [
        (word, rule.get(field))
        for word, field in (
            ("APIGroups", "apiGroups"),
            ("Resources", "resources"),
            ("NonResourceURLs", "nonResourceURLs"),
            ("ResourceNames", "resourceNames"),
            ("Verbs", "verbs"),
        )
    ]
    text = ", ".join(
        f"{word}:[{', '.join(chr(34) + str(value) + chr(34) for value in values)}]"
        for word, values in clauses
        if values
    )
    return "{" + text + "}"
