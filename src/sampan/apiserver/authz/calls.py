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
    resource, namespace = call.resource, call.namespace
    if resource.plural == "namespaces" and not resource.group:
        namespace = call.name  # who may do something in it may do it to it
    kind = (
        user.name, user.groups, call.verb, resource.group, resource.plural, call.subresource,
        namespace,
    )  # fmt: skip
    reason = may.known.get(kind)
    if reason is None:
        fields = call.options.field_selector
        asked = Attributes(
            user, call.verb, resource.group, resource.plural, call.subresource,
            namespace, call.name or (name_selected(fields) if fields else ""), "", fields,
        )  # fmt: skip
        note("authorization.k8s.io/decision", "forbid")
        reason = await may.require(asked)
        await may.remember(kind, asked, reason)
    if is_noting():
        note("authorization.k8s.io/decision", "allow")
        note("authorization.k8s.io/reason", reason)
