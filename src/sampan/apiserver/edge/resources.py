"""Requests for resources: the request becomes a call, its answer a reply.

Job: options, deadline and body of a call; the answer or watch in the form that Accept asks for.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from sampan.api.calls import DEFAULT_OPTIONS, Answer, Call, ListAnswer, Options
from sampan.api.errors import ApiError, BadRequest, NotAcceptable, Timeout
from sampan.api.protobuf.codec import ProtobufReader
from sampan.api.protobuf.writer import ProtobufWriter
from sampan.api.resources import CREATE, Resource
from sampan.apiserver.audit.audit_log import Entry
from sampan.apiserver.authn.user import User
from sampan.apiserver.chain import Chain, deprecation
from sampan.apiserver.edge.request_bodies import RequestBodies
from sampan.apiserver.http import replies
from sampan.apiserver.http.negotiate import (
    ANSWERED,
    CUSTOM,
    LISTED,
    OBJECT,
    PROTOBUF,
    REPRESENTED,
    Form,
    Offer,
    check_represented,
    full_form,
    patch_type,
)
from sampan.apiserver.http.options import options_of
from sampan.apiserver.http.protobuf_replies import ProtobufReplies
from sampan.apiserver.http.request import RequestInfo, deadline_seconds
from sampan.apiserver.http.watch_messages import watch_messages
from sampan.apiserver.registry.list_options import check_listing
from sampan.apiserver.registry.selection import check_selectors
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import replace
from sampan.core.http.messages import Reply, Request, Response
from sampan.core.http.websocket import is_websocket
from sampan.core.http.written_forms import YAML
from sampan.core.side_thread import SideThread
from sampan.core.telemetry.spans import Marks

LARGE_BYTES = 64 * 1024  # of an answer, from which on writing it counts
MANY_ROWS = 1000  # of a table, or of metadata alone: each is made anew, within some 20 µs
_NO_BODY = frozenset({"get", "list", "watch"})


class ResourceEdge:
    def __init__(self, chain: Chain, protobuf: ProtobufReader, clock: Clock) -> None:
        self._chain, self._clock = chain, clock
        self._in_protobuf = ProtobufReplies(ProtobufWriter(chain.scope.schema))
        self._side, self._yaml_side = SideThread("bodies", 2), SideThread("yaml", 2)
        self._bodies = RequestBodies(protobuf, self._side, self._yaml_side)

    def close(self) -> None:
        self._side.close()
        self._yaml_side.close()

    def protobuf_error(self, error: ApiError) -> Response:
        return self._in_protobuf.error(error)

    async def reply(
        self, request: Request, info: RequestInfo, user: User, marks: Marks, entry: Entry | None
    ) -> Reply:
        """`entry`: where the body is noted for the audit log. Raises ApiError."""
        call = _bare_call(request, info, marks)
        accept = request.headers.get("accept", "")
        try:
            if info.resource is not None and info.resource.custom is None:
                is_listed = call.verb in ("list", "watch")
                check_represented(accept, LISTED if is_listed else REPRESENTED)
            if call.verb in ("list", "watch"):
                options = _listing(request, info, call)
                form = _form_of_list(request, replace(call, options=options))
            else:
                form = full_form(accept, request.query, call.agent, _offer(call.resource))
                options = _options(request, info)
        except ApiError as error:
            await self._chain.authorize(user, call)  # who may not ask is not told what is wrong
            if (old := deprecation(call.resource)) != "":
                error.warnings = [*error.warnings, old]
            raise
        if options is not call.options:
            call = replace(call, options=options)
        if call.verb == "watch":
            return await self._watch(request, call, user, form)
        seconds = deadline_seconds(request.query) if "timeout=" in request.query else None
        if seconds is None:
            return await self._answer(request, call, user, form, entry)
        try:
            async with asyncio.timeout(seconds):
                return await self._answer(request, call, user, form, entry)
        except TimeoutError as error:
            why = "request did not complete within requested timeout - context deadline exceeded"
            raise Timeout(f"Timeout: {why}") from error

    async def _watch(self, request: Request, call: Call, user: User, form: Form) -> Reply:
        watching = await self._chain.watch(user, call)
        if form.media == PROTOBUF:
            return self._in_protobuf.watch(watching, call.resource, form)
        stream = replies.watch_reply(watching, call.resource, form, self._clock)
        if not is_websocket(request):
            return stream
        try:
            return watch_messages(request, stream)
        except BadRequest:
            watching.close()
            raise

    async def _answer(
        self, request: Request, call: Call, user: User, form: Form, entry: Entry | None
    ) -> Response:
        now = self._clock.now()
        read = None if call.verb in _NO_BODY else partial(self._read, request, entry)
        answer = await self._chain.perform(user, call, read)

        def shape() -> Response:
            if form.media == PROTOBUF:
                return self._in_protobuf.answer(answer, call.resource, form)
            if isinstance(answer, Answer):
                return replies.answer_reply(answer, call.resource, form, now)
            return replies.list_reply(answer, form, now)

        shaped = await self._shape(shape, answer, form)
        return await replies.compress(shaped, request.headers.get("accept-encoding", ""))

    async def _read(self, request: Request, entry: Entry | None, call: Call) -> Call:
        call = await self._bodies.read(request, call)
        call.marks.at("decoding")
        if entry is not None:
            entry.read(call.body)
        return call

    async def _shape(
        self, shape: Callable[[], Response], answer: Answer | ListAnswer, form: Form
    ) -> Response:
        """Beside the loop where it takes long."""
        if form.media == YAML:
            # A hundred times as long as JSON, and for people, who can wait for it.
            return await self._yaml_side.run(shape)
        if isinstance(answer, ListAnswer):
            takes_long = len(answer.items) > MANY_ROWS and (form.shape or form.media == PROTOBUF)
        else:
            takes_long = form.media == PROTOBUF and len(answer.data or b"") > LARGE_BYTES
        return await self._side.run(shape) if takes_long else shape()


def _offer(resource: Resource) -> Offer:
    if resource.custom is not None:
        return CUSTOM
    return ANSWERED if resource.verbs == CREATE else OBJECT


def _patch_type(request: Request, info: RequestInfo) -> str:
    """Raises UnsupportedMediaType."""
    if info.verb != "patch":
        return ""
    assert info.resource is not None
    media = request.headers.get("content-type", "")
    return patch_type(media, info.resource.custom is not None)


def _listing(request: Request, info: RequestInfo, call: Call) -> Options:
    """Raises BadRequest."""
    options = options_of(request.query, info.verb)
    if call.verb == "watch" and info.path.startswith(f"{call.resource.path}/watch/"):
        return replace(options, watch_path=True)
    return options


def _form_of_list(request: Request, call: Call) -> Form:
    """As upstream, which looks at the options first. Raises ApiError."""
    try:
        accept = request.headers.get("accept", "")
        return full_form(accept, request.query, call.agent, _offer(call.resource))
    except NotAcceptable:
        check_selectors(call.options)
        check_listing(call)
        raise


def _options(request: Request, info: RequestInfo) -> Options:
    """Of a deletion with a body the query says nothing but what is listed. Raises ApiError."""
    verb = info.verb
    if verb in ("delete", "deletecollection") and _has_body(request):
        return options_of(request.query, "list") if info.verb != "delete" else DEFAULT_OPTIONS
    return options_of(request.query, verb, _patch_type(request, info))


def _has_body(request: Request) -> bool:
    headers = request.headers
    is_long = headers.get("content-length", "0").strip("0") != ""
    return bool(request.body) or is_long or "transfer-encoding" in headers


def _bare_call(request: Request, info: RequestInfo, marks: Marks) -> Call:
    """What the head of the request says, but for its options."""
    assert info.resource is not None
    return Call(
        info.verb, info.resource, info.namespace, info.name, info.subresource, None,
        DEFAULT_OPTIONS, (), request.headers.get("user-agent", ""), 0, marks,
    )  # fmt: skip
