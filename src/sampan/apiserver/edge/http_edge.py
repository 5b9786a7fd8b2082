"""Where HTTP ends: requests become calls, answers become replies.

Job: authenticate a request, find out what it asks for, give it a seat, hand it to who answers it
    (documents, connect, resources, an aggregated server); audit and count it.
Invariant: every reply to a failed request is a Status; nothing below knows of HTTP.
"""

import asyncio
import sys
from collections.abc import Awaitable

from sampan.api.calls import DEFAULT_OPTIONS, Call, Options
from sampan.api.errors import ApiError, BadRequest, NotAcceptable, Unauthorized, UnknownGroup
from sampan.api.protobuf.codec import ProtobufReader
from sampan.apiserver.aggregation.servers import AggregatedServer
from sampan.apiserver.audit.audit_log import Audit, Entry, audit_reply
from sampan.apiserver.authn.user import ANONYMOUS, User
from sampan.apiserver.authz.calls import attributes_of
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.authz.constrained_impersonation import Impersonation
from sampan.apiserver.chain import CONNECTED, Chain
from sampan.apiserver.edge.connect import ConnectEdge
from sampan.apiserver.edge.documents import DocumentsEdge
from sampan.apiserver.edge.request_bodies import refuse_too_large
from sampan.apiserver.edge.resources import LARGE_BYTES, ResourceEdge
from sampan.apiserver.flow.in_flight import Headers, RequestLimit, SeatTaken
from sampan.apiserver.http import impersonation, page, replies, traced_requests
from sampan.apiserver.http.metrics import Measure
from sampan.apiserver.http.negotiate import PROTOBUF, STATUS, full_form
from sampan.apiserver.http.nonresource_paths import Documents
from sampan.apiserver.http.request import (
    NotRouted,
    RequestInfo,
    deadline_seconds,
    foreign_request_info,
    is_watch,
    request_info,
    unknown_path,
)
from sampan.apiserver.proxy.node_proxy import NodeProxy
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Reply, Request, Response
from sampan.core.http.query import first_value
from sampan.core.http.reply_end import when_over
from sampan.core.side_thread import working_for
from sampan.core.telemetry.spans import NO_MARKS

MOST_SECONDS = 10.0  # that a wide answer keeps its seats
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
class RequestPolicy:
    """What is done with every request: how many at once, what is counted, what is audited."""

    measure: Measure
    limit: RequestLimit
    audit: Audit | None = None
    constrained: Impersonation | None = None  # where ConstrainedImpersonation is on


class HttpEdge:
    def __init__(
        self, chain: Chain, documents: Documents, own_page: page.Page | None,
        nodes: NodeProxy | None, policy: RequestPolicy, clock: Clock,
    ) -> None:  # fmt: skip
        self._chain, self._clock = chain, clock
        self._authentication = chain.scope.authentication
        self._audit, self._limit, self._measure = policy.audit, policy.limit, policy.measure
        self._constrained = policy.constrained
        protobuf = ProtobufReader(chain.scope.schema)
        self._documents = DocumentsEdge(chain, documents, own_page, protobuf)
        self._connect = ConnectEdge(chain, nodes)
        self._resources = ResourceEdge(chain, protobuf, clock)
        self._aggregation = chain.aggregation
        self._by_plural = chain.scope.registry.kinds.by_plural

    def close(self) -> None:
        self._resources.close()

    def _error_reply(self, request: Request, error: ApiError) -> Response:
        headers = request.headers
        try:
            form = full_form(
                headers.get("accept", ""), request.query, headers.get("user-agent", ""), STATUS
            )
        except NotAcceptable:
            return replies.error_reply(error, None)
        if form.media == PROTOBUF and not isinstance(error, UnknownGroup):
            return self._resources.protobuf_error(error)
        return replies.error_reply(error, form)

    async def reply(self, request: Request) -> Reply:
        if request.path.startswith(page.ROOT):
            file = self._documents.page_reply(request)
            if file is not None:
                return file
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
        size = None
        if isinstance(reply, Response):
            size = reply.about_bytes()
        else:
            when_over(reply, self._measure.lasts(served.info))
        self._measure.served(served.info, reply.status, ended - started, size)
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
        user = await self._authentication.user(request)
        if user is not ANONYMOUS:
            request.known_as = user.name
        working_for.set(user.name)
        served.marks.at("authentication")
        traced_requests.continue_from(served.marks, user, request)
        unknown: ApiError | None = None
        server = self._aggregation.servers.at(request.path)
        try:
            served.info = self._request_info(request, server)
        except NotRouted as wrong:
            served.info, unknown = wrong.info, wrong.error
        except (ApiError, UnicodeDecodeError) as error:
            unknown = error if isinstance(error, ApiError) else unknown_path()
        info = served.info
        if self._audit is not None:
            served.entry = self._audit.begin(request, info, user, served.id)
        if impersonation.is_asked(request.headers):
            user, constraint = await self._impersonate(request, info, user)
            if served.entry is not None:
                served.entry.impersonated(user, constraint)
        if info is None or info.subresource not in CONNECTED:
            await self._take_seat(served, user, now)
        if "timeout=" in request.query and not _is_long(info):
            deadline_seconds(request.query)
        if unknown is not None:
            await self._authorize(request, info, user)
            raise unknown
        assert info is not None
        if server is not None:
            return await self._pass_on(served, info, user, server)
        return await self._answer(served, info, user)

    async def _take_seat(self, served: "_Served", user: User, now: float) -> None:
        info, path = served.info, served.request.path
        verb = info.verb if info is not None else served.request.method.lower()
        served.seat = self._limit.take(user, info, path, verb, now)
        if served.seat is None:
            served.seat = await self._limit.wait(user, info, path, verb)
            served.marks.at("priority and fairness")

    def _answer(self, served: "_Served", info: RequestInfo, user: User) -> Awaitable[Reply]:
        request = served.request
        if info.resource is None:
            return self._documents.reply(request, info.verb, user)
        if info.subresource in CONNECTED:
            return self._connect.reply(request, info, user)
        return self._resources.reply(request, info, user, served.marks, served.entry)

    async def wants_body(self, request: Request) -> bool:
        """Whether it would be read at all: asked on the head of a request with a large body."""
        try:
            user = await self._authentication.user(request)
            info = self._request_info(request, self._aggregation.servers.at(request.path))
            if impersonation.is_asked(request.headers):
                user, _ = await self._impersonate(request, info, user)
            if info.resource is None:
                return await self._documents.wants_body(request, user)
            await self._chain.authorize(user, _bare_call(info))
        except (ApiError, NotRouted, UnicodeDecodeError):
            return False  # and the answer will say why
        return True

    async def _impersonate(
        self, request: Request, info: RequestInfo | None, user: User
    ) -> tuple[User, str]:
        """Who speaks from here on, and by which constraint. Raises Forbidden, BadRequest."""
        if self._constrained is not None:
            wanted = impersonation.wanted_user(request)
            mode = await self._constrained.allowed(wanted, _asked(request, info, user))
            return mode.user, mode.constraint
        spoken_for = impersonation.impersonated_user(request)
        for each in impersonation.required_access(user, request):
            await self._chain.authorize_impersonation(each)
        return spoken_for, ""

    def _request_info(self, request: Request, server: AggregatedServer | None) -> RequestInfo:
        watch = is_watch(request.query)
        if server is not None:
            return foreign_request_info(request.method, request.path, watch)
        return request_info(request.method, request.path, watch, self._by_plural)

    async def _authorize(self, request: Request, info: RequestInfo | None, user: User) -> None:
        """Of what is not served here, as far as its path says what it is. Raises Forbidden."""
        if info is None or info.resource is None:
            await self._chain.authorize_path(user, request.method.lower(), request.path)
            return
        await self._chain.authorize(user, _bare_call(info, _selected_fields(request, info)))

    async def _pass_on(
        self, served: "_Served", info: RequestInfo, user: User, server: AggregatedServer
    ) -> Reply:
        """To the server whose group it is, in the name of whoever asks."""
        request = served.request
        await self._authorize(request, info, user)
        # The work is another server's: one that hangs must not take everybody's seats.
        if served.seat is not None:
            served.seat.leave(self._clock.monotonic())
            served.seat = None
        refuse_too_large(request)
        is_long = info.verb == "watch" or "follow=" in request.query
        return await self._aggregation.proxy.reply(server, request, user, is_watch=is_long)


def _is_long(info: RequestInfo | None) -> bool:
    """Whether it may last: then nobody looks at its timeout."""
    return info is not None and (info.verb == "watch" or info.subresource in CONNECTED)


def _selected_fields(request: Request, info: RequestInfo) -> str:
    fields = first_value(request.query, "fieldSelector")
    return fields if info.verb in ("list", "watch") else ""


def _asked(request: Request, info: RequestInfo | None, user: User) -> Attributes:
    """What a request asks of the authorizers, as far as its head says it."""
    if info is None or info.resource is None:
        return Attributes(user, request.method.lower(), path=request.path)
    return attributes_of(user, _bare_call(info, _selected_fields(request, info)))


def _bare_call(info: RequestInfo, fields: str = "") -> Call:
    """What is asked, as far as it says who may."""
    assert info.resource is not None
    options = Options(field_selector=fields) if fields else DEFAULT_OPTIONS
    where = (info.namespace, info.name, info.subresource)
    return Call(info.verb, info.resource, *where, options=options)
