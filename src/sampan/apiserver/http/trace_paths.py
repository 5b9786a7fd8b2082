"""Trace paths: traces of objects and requests over HTTP.

Job: answer under /sampan/v1/trace/ and take what parts in other processes noted; None elsewhere.
Invariant: a trace is for who may read what it is about; spans of a pod are taken from who may write
    its status.
"""

from sampan.api.errors import ApiError, not_found
from sampan.api.protobuf.codec import ProtobufReader
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes, Authorization
from sampan.apiserver.http import bodies, replies
from sampan.apiserver.http.request import unknown_path
from sampan.apiserver.registry.traced_objects import TracedObjects
from sampan.core.http.messages import Request, Response
from sampan.core.telemetry.spans import About

SPANS_PATH = "/sampan/v1/spans"
TRACE_PATH = "/sampan/v1/trace/"  # RESOURCE.GROUP/NAMESPACE/NAME, …/NAMESPACE, requests/ID


class TracePaths:
    def __init__(
        self, traced: TracedObjects, authorization: Authorization, protobuf: ProtobufReader
    ) -> None:
        self._traced, self._authorization, self._protobuf = traced, authorization, protobuf

    async def reply(self, request: Request, verb: str, user: User) -> Response | None:
        """None: the path is another's. Raises NotFound, Forbidden, BadRequest."""
        if request.path.startswith(TRACE_PATH) and verb == "get":
            return await self._trace(request.path, user)
        if request.path == SPANS_PATH and verb == "create":
            return await self._take_spans(request, user)
        return None

    async def _trace(self, path: str, user: User) -> Response:
        """Of an object, to who may get the object. Raises NotFound."""
        parts, traced = path.removeprefix(TRACE_PATH).split("/"), self._traced
        if parts[0] == "requests" and len(parts) == 2:
            return await self._traced_request(parts[1], user)
        if len(parts) not in (2, 3):
            raise unknown_path()
        resource, namespace, name = (*parts, "")[:3]
        await self._require_reading(user, (resource, namespace, name))
        if len(parts) == 2:
            return replies.object_reply(traced.in_namespace(resource, namespace))
        found = traced.document(About(resource, namespace, name))
        if found is None:
            raise _no_trace(resource, name, traced.traces.forgotten)
        return replies.object_reply(found)

    async def _traced_request(self, id_: str, user: User) -> Response:
        """To who may get what it was about. Raises NotFound."""
        traced = self._traced
        request = traced.request(id_)
        if request is None:
            raise _no_trace("requests", id_, traced.traces.forgotten)
        await self._require_reading(user, request.about)
        found = traced.request_document(id_, request)
        if found is None:
            raise _no_trace("requests", id_, traced.traces.forgotten)
        return replies.object_reply(found)

    async def _require_reading(self, user: User, about: tuple[str, str, str]) -> None:
        """Raises Forbidden."""
        plural, _, group = about[0].partition(".")
        verb = "get" if about[2] else "list"
        asked = Attributes(user, verb, group, plural, "", about[1], about[2])
        await self._authorization.require(asked)

    async def _take_spans(self, request: Request, user: User) -> Response:
        """What a part in another process has noted. Raises BadRequest."""
        body, _ = bodies.body_of(request, "Ignore", self._protobuf)

        async def may_tell(namespace: str, name: str) -> bool:
            if request.caller:
                return True  # a part of this cluster: in one process nobody would ask it
            asked = Attributes(user, "patch", "", "pods", "status", namespace, name)
            return (await self._authorization.decide(asked))[0]

        spans = body.get("spans") if isinstance(body, dict) else None
        taken = await self._traced.receive(user, spans, may_tell)
        return replies.object_reply({"taken": taken})


def _no_trace(resource: str, name: str, forgotten: int) -> ApiError:
    plural, _, group = resource.partition(".")
    error = not_found("traces of " + plural, group, name)
    if forgotten:
        error.message += f"; {forgotten} older traces have made room for newer ones"
    return error
