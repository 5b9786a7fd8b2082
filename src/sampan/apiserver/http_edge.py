"""Where HTTP ends: requests become calls, answers become replies.

Job: authenticate, build the call, send it through the chain, write the reply; count it.
Invariant: every reply to a failed request is a Status; nothing below knows of HTTP.
"""

from dataclasses import replace
from urllib.parse import parse_qsl

from sampan.api.calls import Answer, Call
from sampan.api.errors import (
    ApiError,
    BadRequest,
    MethodNotAllowed,
    RequestEntityTooLarge,
)
from sampan.apiserver import bodies, replies
from sampan.apiserver.authn.chain import PUBLIC_PATHS
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.chain import Chain
from sampan.apiserver.documents import Documents
from sampan.apiserver.measure import Measure
from sampan.apiserver.negotiate import form_of, patch_type
from sampan.apiserver.request import RequestInfo, is_watch, options_of, request_info, unknown_path
from sampan.core.clock import Clock
from sampan.core.http import Reply, Request, Response

_NO_BODY = frozenset({"get", "list", "watch"})


class HttpEdge:
    def __init__(self, chain: Chain, documents: Documents, measure: Measure, clock: Clock) -> None:
        self._chain = chain
        self._documents = documents
        self._measure = measure
        self._clock = clock

    async def reply(self, request: Request) -> Reply:
        started = self._clock.monotonic()
        info: RequestInfo | None = None
        try:
            user = self._chain.parts.authentication.user(request)
            try:
                info = request_info(request.method, request.path, is_watch(request.query))
            except (ApiError, UnicodeDecodeError) as error:
                self._authorize_path(user, request)
                raise error if isinstance(error, ApiError) else unknown_path() from error
            if info.resource is None:
                reply: Reply = self._document(request, info, user)
            else:
                reply = await self._resource(request, info, user)
        except ApiError as error:
            reply = replies.error_reply(error)
        except RecursionError:
            reply = replies.error_reply(BadRequest("the body is nested too deeply"))
        self._measure.served(info, reply.status, self._clock.monotonic() - started)
        return reply

    def _document(self, request: Request, info: RequestInfo, user: User) -> Response:
        self._authorize_path(user, request)
        if info.verb != "get":
            raise MethodNotAllowed(
                "the server does not allow this method on the requested resource"
            )
        reply = self._documents.reply(request)
        if reply is None:
            raise unknown_path()
        return reply

    def _authorize_path(self, user: User, request: Request) -> None:
        if request.path in PUBLIC_PATHS:
            return
        verb = request.method.lower()
        self._chain.parts.authorization.require(Attributes(user, verb, path=request.path))

    async def _resource(self, request: Request, info: RequestInfo, user: User) -> Reply:
        form = form_of(request.headers.get("accept", ""))
        call = self._call(request, info)
        pretty = "pretty=" in request.query and _is_pretty(request.query)
        if call.verb == "watch":
            watching = await self._chain.watch(user, call)
            return replies.watch_reply(watching, call.resource, form)
        answer = await self._chain.perform(user, call)
        if isinstance(answer, Answer):
            shaped = replies.answer_reply(answer, form, pretty)
        else:
            shaped = replies.list_reply(answer, form, pretty)
        return await replies.packed(shaped, request.headers.get("accept-encoding", ""))

    def _call(self, request: Request, info: RequestInfo) -> Call:
        assert info.resource is not None
        options = options_of(request.query)
        verb = info.verb
        body: object = None
        problems: tuple[str, ...] = ()
        if request.body_too_large:
            raise RequestEntityTooLarge(f"Request entity too large: limit is {bodies.LIMIT}")
        if verb == "patch":
            kind = patch_type(request.headers.get("content-type", ""))
            options = replace(options, patch_type=kind)
            body, problems = bodies.patch_body_of(request, kind, options.field_validation)
        elif verb in ("delete", "deletecollection"):
            options = bodies.delete_options(request, options)
        elif verb not in _NO_BODY:
            body, problems = bodies.body_of(request, options.field_validation)
        return Call(
            verb, info.resource, info.namespace, info.name, info.subresource, body, options,
            problems,
        )  # fmt: skip


def _is_pretty(query: str) -> bool:
    given = dict(parse_qsl(query, keep_blank_values=True))
    return given.get("pretty", "false").lower() not in ("false", "0")
