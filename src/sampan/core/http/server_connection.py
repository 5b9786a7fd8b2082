"""One client's connection to our server: its protocol and the task that answers it.

Job: read requests, call the handler, write its replies, hand a connection over after an upgrade.
Invariant: replies leave in the order in which their requests came.
Invariant: a client that is gone has no running handler and no open stream.
Owner: a connection is touched by its own task and callbacks only; `Connections` is its server's.
"""

import asyncio
import math
import ssl
from collections.abc import Iterable
from typing import cast

from sampan.core.clock import Clock
from sampan.core.http import framing
from sampan.core.http.clients import Clients
from sampan.core.http.messages import (
    Handler,
    Limits,
    Response,
    Stream,
    Upgrade,
    WantsBody,
)
from sampan.core.http.raw_connection import RawConnection, probe_silent_peers
from sampan.core.http.turns import Turns
from sampan.core.http.unsent import Unsent
from sampan.core.http.wire import (
    CONTINUE,
    LAST_CHUNK,
    Arrived,
    Refusal,
    RequestReader,
    has_no_body,
    http_date,
    refusal_body,
    render_chunk,
    render_head,
)
from sampan.core.shares import Shares
from sampan.core.tasks import Tasks

PIPELINED = 16  # requests that may wait on one connection before reading pauses
# What is parsed at once. Of strangers it is one request after the other, of others a few hundred.
PARSED_BYTES, STRANGERS_BYTES = 16 * 1024, 256
STREAMED_BYTES = 128 * 1024  # of one answer, before others have their turn
LINGER_SECONDS = 0.5  # as net/http: time for the client to read an answer to what we did not read


class Connections:
    """What the connections of one server share."""

    def __init__(
        self,
        handler: Handler,
        wants_body: WantsBody | None,
        limits: Limits,
        clock: Clock,
        name: str,
        *,
        knows_callers: bool = False,
    ) -> None:
        self.handler, self.wants_body, self.knows_callers = handler, wants_body, knows_callers
        self.limits, self.clients = limits, Clients(limits)
        self.strangers = Shares(limits.strangers, limits.strangers_per_client)
        self.turns = Turns(clock)
        self.unsent = Unsent(limits.unsent_bytes)
        self.tasks = Tasks(f"{name} server")
        self.stopping = False
        self.open: set[ServerConnection] = set()
        self._clock = clock
        self._gone: asyncio.Future[None] | None = None  # set while somebody waits for the last one
        self._date, self._date_until = "", -math.inf

    async def all_gone(self, seconds: float) -> bool:
        if self.open:
            self._gone = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._gone], timeout=seconds)
        return not self.open

    def left(self, connection: "ServerConnection") -> None:
        self.open.discard(connection)
        if not self.open and self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def now(self) -> float:
        return self._clock.now()

    def date_line(self, now: float) -> str:
        """`now` is the loop's; the text is made once a second, not once an answer."""
        if now >= self._date_until:
            self._date = f"date: {http_date(self._clock.now())}\r\n"
            self._date_until = now + 1.0
        return self._date


class ServerConnection(asyncio.Protocol):
    """One client. Its task waits for requests and answers them one after the other."""

    __slots__ = (
        "_answering",
        "_asking",
        "_buffered",
        "_busy",
        "_ending_stream",
        "_idle_deadline",
        "_limits",
        "_lingering",
        "_loop",
        "_part_deadline",
        "_part_in_body",
        "_raw",
        "_reader",
        "_reading_paused",
        "_shared",
        "_streaming",
        "_task",
        "_timer",
        "_timer_at",
        "_transport",
        "_trusted_until",
        "_unparsed",
        "_waiter",
        "_who",
        "_writable",
    )

    def __init__(self, shared: Connections, loop: asyncio.AbstractEventLoop) -> None:
        self._shared, self._loop, self._limits = shared, loop, shared.limits
        self._task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None  # the task waits for a request
        self._writable: asyncio.Future[None] | None = None  # set while the client reads too slowly
        self._raw: RawConnection | None = None  # after an upgrade
        self._answering: Arrived | None = None  # a request whose answer's head was not written yet
        self._busy = self._streaming = self._ending_stream = False
        self._reading_paused = self._lingering = self._part_in_body = False
        self._asking: asyncio.Task[None] | None = None
        self._buffered = 0  # bytes that are accounted for
        self._idle_deadline = self._part_deadline = math.inf
        self._trusted_until = math.inf  # the client's certificate may end before the connection
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._unparsed = b""  # of what has arrived, behind requests that wait
        self._who = ""  # whose requests these are; empty: nobody's, of the address

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.pending_bytes)
        probe_silent_peers(transport.get_extra_info("socket"))
        ssl_object = transport.get_extra_info("ssl_object")
        certificate = None if ssl_object is None else ssl_object.getpeercert(binary_form=True)
        peer = transport.get_extra_info("peername")
        remote = str(peer[0]) if peer else ""
        if certificate:
            shown = transport.get_extra_info("peercert")
            self._trusted_until = ssl.cert_time_to_seconds(shown["notAfter"])
            shown.clear()  # nobody asks again, and parsed it takes 2 KiB of each connection
        self._reader = RequestReader(self._limits, remote, certificate)
        self._shared.open.add(self)
        welcome = self._shared.clients.came(remote)
        if certificate or not self._shared.knows_callers:
            self._who = remote or "-"
        elif not self._shared.strangers.take(remote):
            welcome, self._who = False, "-"
        if not welcome:
            self._transport.abort()
            return
        self._idle_deadline = self._loop.time() + self._limits.idle_seconds
        self._arm(self._idle_deadline)
        if self._shared.stopping:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._lingering:
            return
        reader = self._reader
        if self._unparsed or len(data) > (PARSED_BYTES if self._who else STRANGERS_BYTES):
            self._parse(data)
        else:
            reader.feed(data)
        if reader.buffered != self._buffered:
            self._account(reader.buffered)
        if self._shared.wants_body is not None and reader.asks(self._limits.asked_bytes):
            self._ask_for_body()
        if reader.arrived:
            waiter = self._waiter
            if waiter is not None:
                if not waiter.done():
                    waiter.set_result(None)
            elif self._task is None:
                self._task = self._shared.tasks.start("connection", self._answer_requests())
            if len(reader.arrived) >= PIPELINED:
                self._pause_reading()
        if reader.in_message:
            self._part_received()
        else:
            self._part_deadline = math.inf
            if len(reader.leftover) > self._limits.header_bytes:
                self._pause_reading()

    def _parse(self, data: bytes) -> None:
        """Hundreds of requests that came at once wait for their turn: what is behind them is parsed
        when they are answered."""
        reader, at = self._reader, 0
        piece, most = (PARSED_BYTES, PIPELINED) if self._who else (STRANGERS_BYTES, 1)
        data, self._unparsed = self._unparsed + data, b""
        while at < len(data):
            size = len(data) if reader.ended else reader.at_once(piece)
            reader.feed(data[at : at + size])
            at += size
            if len(reader.arrived) >= most and at < len(data):
                self._unparsed = data[at:]
                self._pause_reading()
                return

    def _parse_on(self) -> None:
        if not self._unparsed or self._transport.is_closing():
            return
        self.data_received(b"")
        if self._reading_paused and self._asking is None and not self._reader.arrived:
            self._reading_paused = False  # all that is here is parsed, and the rest is to come
            self._transport.resume_reading()

    def _account(self, buffered: int) -> None:
        """Bodies that are still arriving are bounded for each client, and for all together."""
        change, self._buffered = buffered - self._buffered, buffered
        if not self._shared.clients.holds(self._reader.remote, change):
            self._reader.refuse(429, "too many bytes of bodies are arriving")

    def _ask_for_body(self) -> None:
        """Reading stops until somebody has looked at who sends it."""
        self._pause_reading()
        self._asking = self._shared.tasks.start("body", self._asked_for_body())

    async def _asked_for_body(self) -> None:
        assert self._shared.wants_body is not None
        wanted = await self._shared.wants_body(self._reader.head())
        self._asking = None
        if not wanted:
            self._reader.refuse_body()
            self.data_received(b"")
        elif self._reading_paused and not self._transport.is_closing():
            self._reading_paused = False
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        return False  # as net/http: who sends no more is taken to be gone

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()
        self._shared.unsent.slow(self)

    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def reader_is(self) -> str:
        return self._who or self._reader.remote

    def resume_writing(self) -> None:
        self._shared.unsent.caught_up(self)
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._disarm()
        self._shared.left(self)
        self._shared.unsent.caught_up(self)
        self._shared.clients.left(self._reader.remote, self._buffered)
        if not self._who:
            self._shared.strangers.give_back(self._reader.remote)
        for task in (self._task, self._asking):
            if task is not None:
                task.cancel()
        self._let_go()

    def _let_go(self) -> None:
        """Of whatever leads back to here: a connection with TLS is 50 KiB, which go at once, and do
        not wait for the garbage collector."""
        self._task = self._asking = self._raw = None
        self._reader.let_go()

    # What the server calls.

    def wind_down(self) -> None:
        if self._raw is not None:
            self._raw.close()
        elif self._streaming:
            self._end_stream()
        elif not self._busy and not self._reader.arrived:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    # The task.

    async def _answer_requests(self) -> None:
        arrived = self._reader.arrived
        try:
            while True:
                while arrived:
                    item = arrived.pop(0)
                    self._busy = True
                    if isinstance(item, Refusal):
                        return self._refuse(item)
                    self._idle_deadline = math.inf
                    if self._shared.turns.is_free(self._who != ""):
                        goes_on = await self._answer(item)
                    else:
                        goes_on = await self._answer_in_turn(item)
                    if not goes_on:
                        return None
                self._busy = False
                if self._unparsed:
                    self._loop.call_soon(self._parse_on)
                await self._next_request()
        finally:
            if self._answering is not None:
                # The handler failed: its owner has the log, the client gets what little it may.
                self._refuse(Refusal(500, "internal error"))

    async def _answer_in_turn(self, item: Arrived) -> bool:
        """Likewise, where more is to be done than fits in one turn of the loop."""
        turns, known = self._shared.turns, self._who != ""
        await turns.mine(self._who or self._reader.remote, known=known)
        turn, began = turns.number, turns.now()
        goes_on = await self._answer(item)
        if turns.number == turn:  # it waited for nothing
            turns.took(turns.now() - began, known=known)
        return goes_on

    async def _answer(self, item: Arrived) -> bool:
        """Whether the connection goes on."""
        self._answering = item
        if self._trusted_until < math.inf and self._shared.now() > self._trusted_until:
            self._refuse(Refusal(401, "the client certificate has expired"))
            return False
        reply = await self._shared.handler(item.request)
        if item.request.known_as and item.request.known_as != self._who:
            self._learn(item.request.known_as)
        if type(reply) is Response:
            keep_alive = item.keep_alive and not self._shared.stopping
            rest = self._write_response(item, reply, keep_alive)
            self._answering = None
            try:
                for piece in rest:
                    self._transport.write(piece)
                    if self._writable is not None:
                        await asyncio.shield(self._writable)
                if self._writable is not None:
                    await asyncio.shield(self._writable)
            finally:
                if reply.sent is not None:
                    reply.sent()
        elif isinstance(reply, Stream):
            keep_alive = await self._write_stream(item, reply)
        else:
            assert isinstance(reply, Upgrade), reply
            try:
                await self._hand_over(item, reply)
            finally:
                if reply.ended is not None:
                    reply.ended()
            return False
        if item.upgrade and keep_alive:
            self._reader.decline_upgrade()
        if not keep_alive:
            self._close(lingering=item.request.body_too_large)
        return keep_alive

    def _learn(self, known_as: str) -> None:
        """Who asks."""
        if not self._who:
            self._shared.strangers.give_back(self._reader.remote)
        self._who = known_as

    async def _next_request(self) -> None:
        now = self._loop.time()
        self._idle_deadline = now + self._limits.idle_seconds
        if self._timer is None:
            self._arm(self._idle_deadline)
        if self._shared.stopping:
            self._transport.close()
        if self._reader.continue_due:
            self._send_continue()
        if self._reading_paused and self._asking is None and not self._unparsed:
            self._reading_paused = False
            self._transport.resume_reading()
        waiter = self._waiter = self._loop.create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def _write_response(
        self, item: Arrived, reply: Response, keep_alive: bool
    ) -> Iterable[bytes | memoryview]:
        """What is left to write of a large answer."""
        date = self._shared.date_line(self._loop.time())
        first, rest = framing.response(item, reply, date, keep_alive=keep_alive)
        self._transport.write(first)
        return rest

    async def _write_stream(self, item: Arrived, reply: Stream) -> bool:
        """Write until the chunks end; whether the connection can go on after that."""
        chunked = item.chunks_allowed and reply.length is None
        framed = chunked or reply.length is not None
        keep_alive = item.keep_alive and framed and not self._shared.stopping
        bodyless = item.request.method == "HEAD" or has_no_body(reply.status)
        self._streaming = True
        try:
            date = self._shared.date_line(self._loop.time())
            head = framing.stream_head(item, reply, date, chunked=chunked, keep_alive=keep_alive)
            self._answering = None
            self._transport.write(head)
            if not bodyless and not self._shared.stopping:
                await self._write_chunks(reply, chunked)
        except asyncio.CancelledError:
            if not self._ending_stream or self._transport.is_closing():
                raise
            # It was our own `_end_stream`: the answer ends cleanly, the connection after it.
            cast("asyncio.Task[None]", self._task).uncancel()
        except ConnectionError:
            # Where the chunks come from is gone: the client must see that this is not the end.
            self._transport.abort()
            return False
        finally:
            self._streaming = False
            close = getattr(reply.chunks, "aclose", None)
            if close is not None:
                await close()
        if chunked and not bodyless:
            self._transport.write(LAST_CHUNK)
        return keep_alive and not self._shared.stopping

    async def _write_chunks(self, reply: Stream, chunked: bool) -> None:
        transport, write = self._transport, self._transport.write
        written = total = 0
        async for chunk in reply.chunks:
            written += len(chunk)
            total += len(chunk)
            if written > STREAMED_BYTES:
                await asyncio.sleep(0)  # chunks that are all there would never make us wait
                written = 0
            if transport.is_closing():
                # Chunks that never make us wait would go on for ever: nobody gets to cancel us.
                raise ConnectionResetError("the client is gone")
            if chunk:  # an empty chunk would be the end
                write(render_chunk(chunk) if chunked else chunk)
            if self._writable is not None:
                await asyncio.shield(self._writable)
        if reply.length is not None and total != reply.length:
            raise ConnectionResetError("the answer is not as long as it said")

    def _end_stream(self) -> None:
        if not self._ending_stream and self._task is not None:
            self._ending_stream = True
            self._task.cancel()

    async def _hand_over(self, item: Arrived, reply: Upgrade) -> None:
        if not item.upgrade:
            raise ValueError(f"{item.request.path}: an upgrade that nobody asked for")
        head = render_head(reply.status, reply.headers, "")
        self._disarm()
        self._answering = None
        arrived, self._unparsed = self._reader.leftover + self._unparsed, b""
        self._raw = raw = RawConnection(self._transport, arrived, on_lost=self._raw_lost)
        if self._writable is not None:
            raw.pause_writing()
        self._transport.set_protocol(raw)
        if self._reading_paused:
            self._transport.resume_reading()
        if self._shared.stopping:
            raw.close()
        try:
            await raw.write(head)
            await reply.take_over(raw)
        except ConnectionError:
            return  # they left: nobody is there to be told
        finally:
            raw.close()

    def _raw_lost(self) -> None:
        self._shared.left(self)
        self._let_go()

    def _refuse(self, refusal: Refusal) -> None:
        self._answering = None
        if self._transport.is_closing():
            return
        body = refusal_body(refusal)
        framing = f"content-length: {len(body)}\r\nconnection: close\r\n"
        headers = (("content-type", "text/plain; charset=utf-8"),)
        self._transport.write(render_head(refusal.status, headers, framing) + body)
        self._close(lingering=True)

    # Timers, closing, backpressure.

    def _part_received(self) -> None:
        """Some of a request is here: the rest has to come in time."""
        in_body = self._reader.in_body
        if self._part_deadline == math.inf or in_body != self._part_in_body:
            seconds = self._limits.body_seconds if in_body else self._limits.header_seconds
            self._part_in_body = in_body
            self._part_deadline = self._loop.time() + seconds
            self._arm(self._part_deadline)
        if self._reader.continue_due and not self._busy and not self._reader.arrived:
            self._send_continue()

    def _send_continue(self) -> None:
        self._reader.continue_due = False
        self._transport.write(CONTINUE)

    def _arm(self, deadline: float) -> None:
        """Wake at `deadline` or earlier: one timer serves all deadlines."""
        if self._timer is not None:
            if self._timer_at <= deadline:
                return
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._look_at_deadlines)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_at_deadlines(self) -> None:
        self._timer = None
        now = self._loop.time()
        due = min(self._idle_deadline, self._part_deadline)
        if due > now:
            if due != math.inf:
                self._arm(due)
        elif self._part_deadline <= now and not self._busy:
            self._refuse(Refusal(408, "the request took too long to arrive"))
        else:
            self._transport.close()

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def _close(self, *, lingering: bool) -> None:
        """Closing over unread bytes resets the connection, and the client may lose our answer:
        so where it may still be sending, listen for a moment longer."""
        if not lingering:
            self._transport.close()
            return
        self._lingering = True
        self._disarm()
        if self._reading_paused:
            self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._timer = self._loop.call_later(LINGER_SECONDS, self._transport.close)
