"""Nobody hands on rights that they do not hold.

Job: refuse a role with rules, or a binding to a role, beyond what its writer may do, unless the
    writer has the verb `escalate` or `bind`. Not to be switched off: part of the kinds themselves.
"""

from sampan.api.errors import ApiError, forbidden, not_found
from sampan.api.objects import Obj, meta_of, name_of
from sampan.api.resources import Resource
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.parts import PluginParts
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.authz.bootstrap.objects import GROUP
from sampan.apiserver.authz.chain import Attributes as Asked
from sampan.apiserver.authz.chain import Authorization
from sampan.apiserver.authz.rbac import Rbac

_EVERYTHING: list[Obj] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]


def plugin(parts: PluginParts) -> Steps:
    rbac, authorization = parts.rbac, parts.authorization

    async def check(attributes: Attributes) -> None:
        new, old = attributes.obj, attributes.old
        assert new is not None
        if MASTERS in attributes.user.groups or _is_same(new, old):
            return
        if "roleRef" in new:
            await _check_binding(rbac, authorization, attributes, new)
        else:
            await _check_role(rbac, authorization, attributes, new)

    return Steps(validate=check)


def _is_same(new: Obj, old: Obj | None) -> bool:
    fields = ("rules", "aggregationRule", "subjects", "roleRef")
    return old is not None and all(new.get(one) == old.get(one) for one in fields)


async def _check_role(
    rbac: Rbac, authorization: Authorization, attributes: Attributes, role: Obj
) -> None:
    resource = attributes.resource
    asked = Asked(
        attributes.user, "escalate", GROUP, resource.plural, "", attributes.namespace,
        name_of(role),
    )  # fmt: skip
    if (await authorization.decide(asked))[0]:
        return
    old = attributes.old or {}
    gathers = role.get("aggregationRule")
    is_new = gathers and gathers != old.get("aggregationRule")
    if is_new and rbac.not_covered(attributes.user, "", _EVERYTHING):
        why = "must have cluster-admin privileges to use an aggregationRule"
        raise forbidden(resource.plural, GROUP, name_of(role), why)
    rules = role.get("rules") or []
    if rules == (old.get("rules") or []) and attributes.old is not None:
        return
    _refuse_beyond(rbac, attributes, rules)


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
        raise _refused(attributes.resource, attributes.obj or {}, attributes.user, beyond)


def _refused(resource: Resource, obj: Obj, user: User, beyond: list[Obj]) -> ApiError:
    groups = " ".join(f'"{one}"' for one in user.groups)
    shown = "\n".join(_shown(one) for one in beyond)
    why = (
        f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not '
        f"currently held:\n{shown}"
    )
    name = name_of(obj) or meta_of(obj).get("generateName", "")
    return forbidden(resource.plural, resource.group, name, why)


def _shown(rule: Obj) -> str:
    """As upstream's CompactString."""
    parts = [
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
        f"{word}:[{', '.join(chr(34) + str(one) + chr(34) for one in values)}]"
        for word, values in parts
        if values
    )
    return "{" + text + "}"
