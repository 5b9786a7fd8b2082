"""The AdmissionRequest: one write as webhooks and policies see it. Pure.

Job: kind and resource as asked for and as matched, who asks, and the objects in the rule's version.
"""

from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.apiserver.admission.chain import Attributes
from sampan.apiserver.admission.matching import rules
from sampan.apiserver.authn.user import User


def request_of(attributes: Attributes, matched: rules.Matched, uid: str) -> Obj:
    asked, shown = attributes.resource, matched.resource
    request: Obj = {
        "uid": uid,
        "kind": _kind(shown, attributes),
        "resource": _resource(shown),
        "requestKind": _kind(asked, attributes),
        "requestResource": _resource(asked),
        "operation": attributes.operation,
        "userInfo": user_info(attributes.user),
        "object": rules.as_matched(matched, attributes, attributes.obj),
        "oldObject": rules.as_matched(matched, attributes, attributes.old),
        "dryRun": attributes.dry_run,
        "options": attributes.options or None,
    }
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    if attributes.subresource:
        request["subResource"] = request["requestSubResource"] = attributes.subresource
    return request


def user_info(user: User) -> Obj:
    shown: Obj = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        shown["uid"] = user.uid
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return shown


def _kind(resource: Resource, attributes: Attributes) -> Obj:
    """Of the object that is sent: a subresource may take one of another kind."""
    row = resource.subresource(attributes.subresource) if attributes.subresource else None
    if row is not None and row.kind and (attributes.obj or {}).get("kind") == row.kind:
        return {"group": row.group, "version": row.version, "kind": row.kind}
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: Resource) -> Obj:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}
