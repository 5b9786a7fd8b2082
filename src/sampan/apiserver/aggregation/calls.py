"""In-process calls for resources of an aggregated server.

Job: a Call → the request that it would be elsewhere; the reply → the answer that it stands for.
"""

from urllib.parse import quote, urlencode

import orjson

from sampan.api.calls import Answer, Call, Item, ListAnswer
from sampan.api.errors import InternalError, ServiceUnavailable, from_status
from sampan.api.objects import Obj
from sampan.apiserver.aggregation.proxy import AggregatedProxy
from sampan.apiserver.aggregation.servers import AggregatedServer
from sampan.apiserver.authn.user import User
from sampan.core.digits import is_digits
from sampan.core.http.messages import Request, Response, Stream

_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE",
            "deletecollection": "DELETE"}  # fmt: skip
_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_AGENT = "sampan/in-process"


async def perform_elsewhere(
    proxy: AggregatedProxy, server: AggregatedServer, user: User, call: Call
) -> Answer | ListAnswer:
    """Raises ApiError."""
    reply = await proxy.reply(server, request_of_call(call), user)
    if isinstance(reply, Stream):
        body = b"".join([chunk async for chunk in reply.chunks])
    else:
        assert isinstance(reply, Response), "nothing asked for an upgrade"
        body = reply.whole()
    answer = _parse(body, reply.status)
    if reply.status >= 400:
        raise from_status(answer, reply.status)
    if call.verb != "list":
        return Answer(answer, body, reply.status)
    metadata = answer.get("metadata") or {}
    items = [_item(call, item) for item in answer.get("items") or ()]
    revision = str(metadata.get("resourceVersion") or "")
    number = int(revision) if is_digits(revision) else 0
    return ListAnswer(call.resource, items, number, str(metadata.get("continue") or ""))


def request_of_call(call: Call) -> Request:
    resource, options = call.resource, call.options
    path = [resource.path]
    if call.namespace:
        path.append(f"namespaces/{quote(call.namespace, safe='')}")
    path.append(resource.plural)
    # As Go writes them: `*` stands for all objects of a kind in the paths of custom metrics.
    path += [quote(item, safe="*") for item in (call.name, call.subresource) if item]
    query = {
        "labelSelector": options.label_selector,
        "fieldSelector": options.field_selector,
        "resourceVersion": options.resource_version,
        "limit": str(options.limit or ""),
        "continue": options.continue_token,
        "dryRun": "All" if options.dry_run else "",
        "fieldManager": options.field_manager,
        "propagationPolicy": options.propagation,
        "gracePeriodSeconds": "" if options.grace_seconds is None else str(options.grace_seconds),
        **dict(options.parameters),
    }
    headers = {"user-agent": call.agent or _AGENT, "accept": "application/json"}
    if call.body is not None:
        headers["content-type"] = _PATCHES.get(options.patch_type, "application/json")
    return Request(
        _METHODS.get(call.verb, "GET"), "/".join(path),
        urlencode({key: text for key, text in query.items() if text}), headers,
        b"" if call.body is None else orjson.dumps(call.body),
    )  # fmt: skip


def _parse(body: bytes, status: int) -> Obj:
    try:
        answer = orjson.loads(body)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    if status >= 400:
        return {"message": body[:1024].decode(errors="replace").strip(), "code": status}
    raise InternalError("an aggregated API server answered with something that is no object")


def _item(call: Call, obj: Obj) -> Item:
    if not isinstance(obj, dict):
        raise ServiceUnavailable("an aggregated API server listed something that is no object")
    # Others leave these out of a list's items; whoever reads one counts on them.
    whole = {"kind": call.resource.kind, "apiVersion": call.resource.api_version, **obj}
    return Item("", 0, whole, orjson.dumps(whole))
