"""Where HTTP ends: requests become calls, answers become replies.

Job: authenticate, build the call, send it through the chain, write the reply; count it.
Invariant: every reply to a failed request is a Status; nothing below knows of HTTP.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from urllib.parse import parse_qsl

from sampan.api.calls import DEFAULT_OPTIONS, Answer, Call, ListAnswer, Options
from sampan.api.custom.custom_version import custom_of
from sampan.api.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    MethodNotAllowed,
    RequestEntityTooLarge,
    ServiceUnavailable,
    Timeout,
    Unauthorized,
    UnknownPath,
)
from sampan.api.objects import copy_of
from sampan.api.protobuf.codec import ProtobufReader
from sampan.api.protobuf.writer import ProtobufWriter
from sampan.api.resources import CREATE, Resource
from sampan.apiserver.aggregation.aggregation import Aggregation
from sampan.apiserver.aggregation.servers import AggregatedServer
from sampan.apiserver.audit.audit_log import Audit, Entry, audit_reply
from sampan.apiserver.authn.chain import ALWAYS_ALLOWED_PATHS
from sampan.apiserver.authn.page_sessions import CODE_SECONDS
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.calls import authorize
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.chain import CONNECTED, Chain
from sampan.apiserver.flow.in_flight import Headers, RequestLimit, SeatTaken
from sampan.apiserver.http import bodies, impersonation, page, replies, traced_requests
from sampan.apiserver.http.metrics import Measure
from sampan.apiserver.http.negotiate import PROTOBUF, YAML, Form, full_form, patch_type
from sampan.apiserver.http.nonresource_paths import Documents
from sampan.apiserver.http.page import Page
from sampan.apiserver.http.protobuf_replies import ProtobufReplies
from sampan.apiserver.http.request import (
    MOST_REMEMBERED,
    RequestInfo,
    deadline_seconds,
    foreign_request_info,
    is_watch,
    options_of,
    request_info,
    unknown_path,
)
from sampan.apiserver.http.trace_paths import TracePaths
from sampan.apiserver.http.watch_messages import watch_messages
from sampan.apiserver.proxy import connect_options
from sampan.apiserver.proxy.node_proxy import NodeProxy
from sampan.apiserver.write.decoding import expected_kind
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Reply, Request, Response
from sampan.core.http.websocket import is_websocket
from sampan.core.side_thread import SideThread
from sampan.core.telemetry.spans import NO_MARKS, Marks

_DEPRECATED = {
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
LARGE_BYTES = 64 * 1024  # of an answer, from which on writing it counts
MOST_SECONDS = 10.0  # that it keeps its seats
MANY_ROWS = 1000  # of a table, or of metadata alone: each is made anew, within some 20 µs
_SESSIONS = frozenset({"attach", "exec", "portforward"})
_NO_BODY = frozenset({"get", "list", "watch"})
_READS = frozenset({"GET", "HEAD"})


_NOBODY = User("")


class _Served:
    """One request on its way: what has to be let go or written down when it is over."""

    __slots__ = ("entry", "id", "info", "marks", "request", "seat")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.id = traced_requests.request_id(request)
        self.info: RequestInfo | None = None
        self.entry: Entry | None = None
        self.seat: SeatTaken | None = None
        self.marks = NO_MARKS


@dataclass(frozen=True, slots=True)
class EdgeParts:
    """What a request meets besides the chain."""

    documents: Documents
    nodes: NodeProxy | None
    aggregation: Aggregation
    measure: Measure
    limit: RequestLimit
    audit: Audit | None = None
    page: Page | None = None


class HttpEdge:
    def __init__(self, chain: Chain, parts: EdgeParts, clock: Clock) -> None:
        self._chain, self._clock = chain, clock
        self._audit, self._limit = parts.audit, parts.limit
        self._nodes, self._documents, self._measure = parts.nodes, parts.documents, parts.measure
        self._aggregation, self._page = parts.aggregation, parts.page
        self._protobuf = ProtobufReader(chain.parts.schema)
        self._in_protobuf = ProtobufReplies(ProtobufWriter(chain.parts.schema))
        self._by_plural = chain.parts.registry.kinds.by_plural
        self._trace_paths = TracePaths(chain.traced, chain.parts.authorization, self._protobuf)
        self._side, self._yaml_side = SideThread("bodies"), SideThread("yaml")

    def _error_reply(self, request: Request, error: ApiError) -> Response:
        accept = request.headers.get("accept", "")
        if accept.startswith(PROTOBUF) and "," not in accept and not isinstance(error, UnknownPath):
            return self._in_protobuf.error(error)
        return replies.error_reply(error)

    def close(self) -> None:
        self._side.close()
        self._yaml_side.close()

    async def reply(self, request: Request) -> Reply:
        if self._page is not None and request.path.startswith(page.ROOT):
            found = self._page.reply(request)
            if found is not None:
                return found
        started = self._clock.monotonic()
        served = _Served(request)
        reply: Reply | None = None
        kind = 0 if request.method in _READS else 1
        self._measure.under_way[kind] += 1
        try:
            reply = await self._serve(request, served, started)
        except ApiError as error:
            if served.entry is None and self._audit is not None and isinstance(error, Unauthorized):
                served.entry = self._audit.begin(request, None, _NOBODY, served.id)
            self._note_refusal(served, error)
            reply = self._error_reply(request, error)
            error.__traceback__ = None  # its frames have it: without a collector it would stay
        except RecursionError:
            reply = replies.error_reply(BadRequest("the body is nested too deeply"))
        finally:
            self._measure.under_way[kind] -= 1
            if reply is None:
                self._abandon(served, sys.exc_info()[1])
        ended, seat = self._clock.monotonic(), served.seat
        told: Headers = ()
        if seat is not None:
            told = seat.headers
            if (
                seat.seats > 1
                and isinstance(reply, Response)
                and reply.about_bytes() >= LARGE_BYTES
            ):
                self._leave_when_sent(seat, reply)
            else:
                seat.leave(ended)
        if served.entry is not None:
            reply = audit_reply(served.entry, request, reply)
        reply.headers = (*reply.headers, *told, (traced_requests.ID_HEADER, served.id))
        self._measure.served(served.info, reply.status, ended - started)
        return reply

    def _note_refusal(self, served: "_Served", error: ApiError) -> None:
        info = served.info
        if served.marks is not NO_MARKS and info is not None and info.resource is not None:
            self._chain.traced.refused(_bare_call(info), served.marks, str(error))

    def _abandon(self, served: "_Served", error: BaseException | None) -> None:
        """There will be no reply: the caller is gone, or this is a bug."""
        if served.seat is not None:
            served.seat.leave(self._clock.monotonic())
        if served.entry is not None:
            if error is None or isinstance(error, asyncio.CancelledError):
                served.entry.closed_early()
            else:
                served.entry.panicked(error)

    def _leave_when_sent(self, seat: SeatTaken, reply: Response) -> None:
        """A wide request keeps its seats until its answer is written: encrypting is most of the
        work. Not for ever: its reader may be slow."""

        def leave() -> None:
            late.cancel()
            seat.leave(self._clock.monotonic())

        late = asyncio.get_running_loop().call_later(MOST_SECONDS, leave)
        reply.sent = leave

    async def _serve(self, request: Request, served: "_Served", now: float) -> Reply:
        if request.method not in _READS:
            served.marks = self._chain.traced.traces.marks(served.id)
        traced_requests.begin(served.marks)
        user = await self._chain.parts.authentication.user(request)
        served.marks.at("authentication")
        traced_requests.continue_from(served.marks, user, request)
        unknown: ApiError | None = None
        server = self._aggregation.servers.at(request.path)
        try:
            served.info = self._request_info(request, server)
        except (ApiError, UnicodeDecodeError) as error:
            unknown = error if isinstance(error, ApiError) else unknown_path()
        info = served.info
        if self._audit is not None:
            served.entry = self._audit.begin(request, info, user, served.id)
        if impersonation.is_asked(request.headers):
            user = await self._impersonate(request, user)
            if served.entry is not None:
                served.entry.impersonated(user)
        if info is None or info.subresource not in CONNECTED:
            verb = info.verb if info is not None else request.method.lower()
            served.seat = self._limit.take(user, info, request.path, verb, now)
            if served.seat is None:
                served.seat = await self._limit.wait(user, info, request.path, verb)
                served.marks.at("priority and fairness")
        if info is None or unknown is not None:
            await self._authorize_path(user, request)
            raise unknown or unknown_path()
        if server is not None:
            return await self._pass_on(served, info, user, server)
        if info.resource is None:
            return await self._document(request, info, user)
        return await self._resource(request, info, user, served)

    async def wants_body(self, request: Request) -> bool:
        """Whether it would be read at all: asked on the head of a request with a large body."""
        may = self._chain.parts.authorization
        try:
            user = await self._chain.parts.authentication.user(request)
            if impersonation.is_asked(request.headers):
                user = await self._impersonate(request, user)
            info = self._request_info(request, self._aggregation.servers.at(request.path))
            if info.resource is None:
                return False
            await authorize(may, user, _bare_call(info))
        except (ApiError, UnicodeDecodeError):
            return False  # and the answer will say why
        return True

    async def _impersonate(self, request: Request, user: User) -> User:
        """Raises Forbidden, BadRequest."""
        spoken_for = impersonation.impersonated_user(request)
        for asked in impersonation.required_access(user, request):
            await self._chain.parts.authorization.require(asked)
        return spoken_for

    async def _document(self, request: Request, info: RequestInfo, user: User) -> Reply:
        traced = await self._trace_paths.reply(request, info.verb, user)
        if traced is not None:
            return traced
        if request.path == page.CODE_PATH and info.verb == "create" and self._page is not None:
            return await self._login_code(request, user)
        await self._authorize_path(user, request)
        if request.method == "POST" and (action := self._documents.actions.get(request.path)):
            body = bodies.body_of(request, "Ignore", self._protobuf)[0] if request.body else {}
            if not isinstance(body, dict):
                raise BadRequest("the body is no object")
            return replies.object_reply(await action(body))
        server = self._aggregation.openapi_server(request.path) if info.verb == "get" else None
        if server is not None:
            return await self._aggregation.proxy.reply(server, request, user)
        reply = await self._documents.reply(request)
        if reply is None:
            raise unknown_path()
        if info.verb != "get":
            raise MethodNotAllowed(
                "the server does not allow this method on the requested resource"
            )
        return reply

    async def _login_code(self, request: Request, user: User) -> Response:
        """Whoever is somebody may log in to the page, as that. Raises Forbidden."""
        code = await self._chain.parts.authentication.login_code(request, user)
        if code is None:
            raise Forbidden("a login code is for who shows a certificate or token of their own")
        return replies.object_reply(page.code_answer(code, CODE_SECONDS), 201)

    async def _authorize_path(self, user: User, request: Request) -> None:
        if request.path in ALWAYS_ALLOWED_PATHS:
            return
        verb = request.method.lower()
        await self._chain.parts.authorization.require(Attributes(user, verb, path=request.path))

    async def _resource(
        self, request: Request, info: RequestInfo, user: User, served: "_Served"
    ) -> Reply:
        if info.subresource in CONNECTED:
            return await self._connect(request, info, user)
        # What is asked and answered, and never stored, has no table.
        has_table = info.resource is not None and info.resource.verbs != CREATE
        form = full_form(request.headers.get("accept", ""), request.query, has_table)
        call = self._call(request, info, served.marks)
        if call.verb == "watch":
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
        seconds = deadline_seconds(request.query) if "timeout=" in request.query else None
        if seconds is None:
            return await self._answer(request, call, user, form, served.entry)
        try:
            async with asyncio.timeout(seconds):
                return await self._answer(request, call, user, form, served.entry)
        except TimeoutError as error:
            why = "request did not complete within requested timeout - context deadline exceeded"
            raise Timeout(f"Timeout: {why}") from error

    async def _answer(
        self, request: Request, call: Call, user: User, form: Form, entry: Entry | None
    ) -> Response:
        now = self._clock.now()
        await authorize(self._chain.parts.authorization, user, call)
        call.marks.at("authorization")
        if call.verb not in _NO_BODY:
            call = await self._with_body(request, call)
            call.marks.at("decoding")
            if entry is not None:
                entry.read(call.body)
        old = _deprecation(call.resource)
        try:
            answer = await self._chain.perform_authorized(user, call)
            self._chain.traced.answered(user, call, answer, call.marks)
        except ApiError as error:
            error.warnings = [*error.warnings, old] if old else error.warnings
            raise
        if old:
            answer.warnings = [*answer.warnings, old]

        def shape() -> Response:
            if form.media == PROTOBUF:
                return self._in_protobuf.answer(answer, call.resource, form)
            if isinstance(answer, Answer):
                return replies.answer_reply(answer, call.resource, form, now)
            return replies.list_reply(answer, form, now)

        shaped = await self._shape(shape, answer, form)
        return await replies.compress(shaped, request.headers.get("accept-encoding", ""))

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

    async def _connect(self, request: Request, info: RequestInfo, user: User) -> Reply:
        """What a node answers: logs, exec, attach, port-forward, proxying."""
        resource = info.resource
        assert resource is not None
        call = Call(info.verb, resource, info.namespace, info.name, info.subresource)
        await authorize(self._chain.parts.authorization, user, call)
        if request.body_too_large:
            raise RequestEntityTooLarge(f"Request entity too large: limit is {bodies.LIMIT}")
        if info.subresource in _SESSIONS and info.verb != "create":
            # A WebSocket begins with a GET, and is no reading all the same (as v1.35).
            await authorize(self._chain.parts.authorization, user, replace(call, verb="create"))
        if info.subresource == "log":
            return await self._to_nodes().logs(info.namespace, info.name, request)
        rest = _raw_rest(request.path, info) if info.subresource == "proxy" else ""
        asked = connect_options.options_of(resource, info.subresource, request.query, rest)
        admitted = await self._chain.connect(user, call, copy_of(asked))
        if info.subresource == "proxy":
            rest = rest if admitted == asked else connect_options.path_of(admitted)
            return await self._to_nodes().proxy(
                resource.plural, info.namespace, info.name, rest, request
            )
        if admitted != asked:
            request = replace(request, query=connect_options.query_of(admitted))
        nodes = self._to_nodes()
        return await nodes.connect(info.subresource, info.namespace, info.name, request)

    def _request_info(self, request: Request, server: AggregatedServer | None) -> RequestInfo:
        watch = is_watch(request.query)
        if server is not None:
            return foreign_request_info(request.method, request.path, watch)
        return request_info(request.method, request.path, watch, self._by_plural)

    async def _authorize_elsewhere(self, request: Request, info: RequestInfo, user: User) -> None:
        """Raises Forbidden."""
        if info.resource is None:
            await self._authorize_path(user, request)
            return
        fields = dict(parse_qsl(request.query)).get("fieldSelector", "")
        call = _bare_call(info, fields if info.verb in ("list", "watch") else "")
        await authorize(self._chain.parts.authorization, user, call)

    async def _pass_on(
        self, served: "_Served", info: RequestInfo, user: User, server: AggregatedServer
    ) -> Reply:
        """To the server whose group it is, in the name of whoever asks."""
        request = served.request
        await self._authorize_elsewhere(request, info, user)
        # The work is another server's: one that hangs must not take everybody's seats.
        if served.seat is not None:
            served.seat.leave(self._clock.monotonic())
            served.seat = None
        if request.body_too_large:
            raise RequestEntityTooLarge(f"Request entity too large: limit is {bodies.LIMIT}")
        is_long = info.verb == "watch" or "follow=" in request.query
        return await self._aggregation.proxy.reply(server, request, user, is_watch=is_long)

    def _to_nodes(self) -> NodeProxy:
        if self._nodes is None:
            raise ServiceUnavailable("no kubelet client configured")
        return self._nodes

    def _call(self, request: Request, info: RequestInfo, marks: Marks) -> Call:
        """What the head of the request says: enough to say who may."""
        assert info.resource is not None
        return Call(
            info.verb, info.resource, info.namespace, info.name, info.subresource, None,
            options_of(request.query, info.verb), (), request.headers.get("user-agent", ""),
            0, marks,
        )  # fmt: skip

    async def _with_body(self, request: Request, call: Call) -> Call:
        """Reading a body costs more than refusing it: it comes after authorization, and beside the
        loop where it is a large one."""
        if request.body_too_large:
            raise RequestEntityTooLarge(f"Request entity too large: limit is {bodies.LIMIT}")

        def read() -> Call:
            return self._read_body(request, call)

        if bodies.is_long_yaml(request):
            return await self._yaml_side.run(read)
        if len(request.body) > bodies.AT_ONCE_BYTES:
            return await self._side.run(read)
        return read()

    def _read_body(self, request: Request, call: Call) -> Call:
        options = call.options
        body: object = None
        problems: tuple[str, ...] = ()
        if call.verb == "patch":
            kind = patch_type(request.headers.get("content-type", ""))
            options = (
                _patching(options, kind)
                if len(request.query) <= MOST_REMEMBERED
                else (replace(options, patch_type=kind))
            )
            body, problems = bodies.patch_body_of(request, kind, options.field_validation)
        elif call.verb in ("delete", "deletecollection"):
            options = bodies.delete_options(request, options, self._protobuf)
        else:
            kind = expected_kind(call.resource, call.subresource)[1]
            validation = options.field_validation
            body, problems = bodies.body_of(request, validation, self._protobuf, kind)
            if call.resource.custom is not None:
                bodies.check_kind(request, kind, body)
        return Call(
            call.verb, call.resource, call.namespace, call.name, call.subresource, body, options,
            problems, call.agent, len(request.body), call.marks,
        )  # fmt: skip


def _bare_call(info: RequestInfo, fields: str = "") -> Call:
    """What is asked, as far as it says who may."""
    assert info.resource is not None
    options = Options(field_selector=fields) if fields else DEFAULT_OPTIONS
    where = (info.namespace, info.name, info.subresource)
    return Call(info.verb, info.resource, *where, options=options)


def _deprecation(resource: Resource) -> str:
    """What everybody who uses the kind in this version is warned with."""
    custom = custom_of(resource)
    if custom is not None:
        return custom.warning
    return "" if resource.group else _DEPRECATED.get(resource.plural, "")


@lru_cache(maxsize=128)
def _patching(options: Options, kind: str) -> Options:
    """Clients repeat the same few, and a copy costs more than all the rest of them."""
    return replace(options, patch_type=kind)


def _raw_rest(path: str, info: RequestInfo) -> str:
    """What follows proxy/, still encoded: it is not ours to read."""
    before = 8 if info.namespace else 6  # /api/v1/namespaces/NS/pods/NAME/proxy, /api/v1/nodes/…
    rest = path.split("/")[before:]
    return "/" + "/".join(rest) if rest else ""
