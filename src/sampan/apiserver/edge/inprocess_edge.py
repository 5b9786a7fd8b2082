"""The server's side of the in-process client: components call under user names of their own.

Job: send the calls of one user through the chain, with the audit events that the same request
    would have over HTTPS.
Invariant: without an audit log nothing here is in the way of a call.
Invariant: what a refused call brought is not kept by its refusal: a frame that made the error has
    it, and the error has the frame; what was refused may be large, and nobody looks for cycles of
    what is old.
"""

import asyncio
from collections.abc import Sequence
from urllib.parse import quote

import orjson

from sampan.api.calls import Answer, Call, Event, ListAnswer
from sampan.api.errors import ApiError
from sampan.api.resources import Resource
from sampan.apiserver.audit.audit_log import Audit, Entry
from sampan.apiserver.authn.user import User
from sampan.apiserver.chain import Chain
from sampan.apiserver.http.replies import error_reply
from sampan.apiserver.http.request import RequestInfo
from sampan.apiserver.watch.watch_stream import WatchStream
from sampan.core.http.messages import Request, Response

_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE",
            "deletecollection": "DELETE"}  # fmt: skip
_HERE = "127.0.0.1"
_AGENT = "sampan/in-process"


class AsUser:
    """What client.inprocess is built on."""

    def __init__(self, chain: Chain, user: User) -> None:
        self._chain = chain
        self._user = user

    async def perform(self, call: Call) -> Answer | ListAnswer:
        try:
            return await self._chain.perform(self._user, self._chain.served(call))
        except ApiError as error:
            error.__traceback__ = None
            raise

    async def watch(self, call: Call) -> WatchStream:
        return await self._chain.watch(self._user, self._chain.served(call))

    def resources(self, group: str, version: str) -> Sequence[Resource]:
        return self._chain.resources(group, version)


class AuditedUser:
    """The server as one user sees it from inside this process, with every call noted."""

    def __init__(self, chain: Chain, user: User, audit: Audit) -> None:
        self._chain, self._user, self._audit = chain, user, audit

    async def perform(self, call: Call) -> Answer | ListAnswer:
        call = self._chain.served(call)
        request = request_of(call)
        entry = self._audit.begin(request, _info(call, request.path), self._user)
        if entry is None:
            return await AsUser(self._chain, self._user).perform(call)
        try:
            answer = await self._chain.perform(self._user, call)
        except ApiError as error:
            entry.completed(request, error_reply(error))
            error.__traceback__ = None
            raise
        except asyncio.CancelledError:
            entry.closed_early()
            raise
        entry.completed(request, _response(entry, answer))
        return answer

    async def watch(self, call: Call) -> "WatchStream | AuditedWatch":
        call = self._chain.served(call)
        request = request_of(call)
        entry = self._audit.begin(request, _info(call, request.path), self._user)
        if entry is None:
            return await self._chain.watch(self._user, call)
        try:
            watching = await self._chain.watch(self._user, call)
        except ApiError as error:
            entry.completed(request, error_reply(error))
            raise
        except asyncio.CancelledError:
            entry.closed_early()
            raise
        entry.started()
        return AuditedWatch(watching, request, entry)

    def resources(self, group: str, version: str) -> Sequence[Resource]:
        return self._chain.resources(group, version)


class AuditedWatch:
    def __init__(self, watching: WatchStream, request: Request, entry: Entry) -> None:
        self._watching, self._request, self._entry = watching, request, entry
        self._closed = False

    async def next(self) -> list[Event]:
        return await self._watching.next()

    def close(self) -> None:
        self._watching.close()
        if not self._closed:
            self._closed = True
            self._entry.completed(self._request, Response(200))


def request_of(call: Call) -> Request:
    resource = call.resource
    parts = [resource.path]
    if call.namespace:
        parts.append(f"namespaces/{call.namespace}")
    parts.append(resource.plural)
    parts += [quote(item, safe="") for item in (call.name, call.subresource) if item]
    body = b"" if call.body is None else orjson.dumps(call.body)
    query = "watch=true" if call.verb == "watch" else ""
    headers = {"user-agent": call.agent or _AGENT}
    method = _METHODS.get(call.verb, "GET")
    return Request(method, "/".join(parts), query, headers, body, remote=_HERE)


def _info(call: Call, path: str) -> RequestInfo:
    return RequestInfo(call.verb, path, call.resource, call.namespace, call.name, call.subresource)


def _response(entry: Entry, answer: Answer | ListAnswer) -> Response:
    if isinstance(answer, ListAnswer):
        return Response(200)  # as upstream's own clients: a list's content is not noted
    body = b""
    if entry.wants_response:
        body = answer.data if answer.data is not None else orjson.dumps(answer.obj)
    return Response(answer.code, body=body)
