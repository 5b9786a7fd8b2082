"""Authorization of one call.

Job: ask the authorizers about a call, and note their decision in its audit event.
"""

from sampan.api.calls import Call
from sampan.apiserver.audit.audit_log import is_noting, note
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes, Authorization
from sampan.apiserver.registry.selection import name_selected


async def authorize(may: Authorization, user: User, call: Call) -> None:
    """Raises Forbidden."""
    resource, namespace = call.resource, _namespace_of(call)
    kind = (
        user.name, user.groups, call.verb, resource.group, resource.plural, call.subresource,
        namespace,
    )  # fmt: skip
    reason = may.known.get(kind)
    if reason is None:
        asked = attributes_of(user, call)
        note("authorization.k8s.io/decision", "forbid")
        reason = await may.require(asked)
        await may.remember(kind, asked, reason)
    if is_noting():
        note("authorization.k8s.io/decision", "allow")
        note("authorization.k8s.io/reason", reason)


def attributes_of(user: User, call: Call) -> Attributes:
    """What the authorizers are asked about it."""
    resource, fields = call.resource, call.options.field_selector
    return Attributes(
        user, call.verb, resource.group, resource.plural, call.subresource,
        _namespace_of(call), call.name or (name_selected(fields) if fields else ""), "", fields,
    )  # fmt: skip


def _namespace_of(call: Call) -> str:
    """Who may do something in a namespace may do it to it."""
    resource = call.resource
    return call.name if resource.plural == "namespaces" and not resource.group else call.namespace
