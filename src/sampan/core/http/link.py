"""One connection of the client to a server, httptools inside.

Job: send a rendered request, read its answer as it arrives, or become a raw connection.
Invariant: one exchange at a time; a link is reusable only after a whole answer.
Owner: the HttpClient that dialled it, until it became a raw connection.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

from sampan.core.http.errors import HttpError, Stale
from sampan.core.http.origin import Origin
from sampan.core.http.raw_connection import READ_AHEAD, RawConnection, probe_silent_peers
from sampan.core.http.wire import has_no_body, name_of_header
from sampan.core.wakeup import Wakeup

HEAD_BYTES = 1024 * 1024  # as net/http's client


class Link(asyncio.Protocol):
    """One connection to a server."""

    def __init__(self, forget: "Callable[[Link], None]", origin: Origin) -> None:
        self.origin = origin
        self._forget = forget
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._error: HttpError | None = None
        self._used = False
        self._early = b""
        self._begin("")

    def _begin(self, method: str) -> None:
        self._method = method
        self._parser = _response_parser(self)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.cookies: list[str] = []  # which do not bear being joined (RFC 9110, 5.3)
        self.upgraded = False
        self._leftover = b""
        self._head_bytes = 0
        self._whole = method == ""  # nothing asked, nothing outstanding
        self._keep_alive = True
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._reading_paused = False
        self._wakeup = Wakeup()  # one exchange at a time

    # What the client calls.

    @property
    def reusable(self) -> bool:
        return (
            self._whole
            and self._keep_alive
            and not self.upgraded
            and self._error is None
            and not self._transport.is_closing()
        )

    async def ask(self, method: str, message: bytes) -> None:
        """Until the head of the answer is here."""
        kept, self._used = self._used, True
        self._begin(method)
        early, self._early = self._early, b""
        if early:
            self.data_received(early)
        if not self._transport.is_closing():
            self._transport.write(message)
        while self.status < 200 and not self.upgraded:
            if self._error is not None:
                nothing_came = kept and self._head_bytes == 0
                raise (Stale(*self._error.args) if nothing_came else self._error)
            await self._wakeup.wait()

    async def next_chunk(self) -> bytes:
        """What has arrived of the body; b"" at its end."""
        while not self._chunks:
            if self._whole:
                return b""
            if self._error is not None:
                raise self._error
            await self._wakeup.wait()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    async def rest_of_body(self, limit: int) -> bytes:
        parts, size = [], 0
        while part := await self.next_chunk():
            size += len(part)
            if size > limit:
                raise HttpError(f"the answer is larger than {limit} bytes")
            parts.append(part)
        return b"".join(parts)

    def into_raw_connection(self) -> RawConnection:
        assert self.upgraded
        self._forget(self)
        raw = RawConnection(self._transport, self._leftover)
        self._transport.set_protocol(raw)
        del self._parser  # as in connection_lost, of which this one will not hear
        self._transport.resume_reading()
        return raw

    def abort(self) -> None:
        """No goodbye: nothing that we still owe is on its way."""
        self._transport.abort()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        probe_silent_peers(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self.upgraded:
            self._leftover += data
            return
        if not self._used and len(self._early) < HEAD_BYTES:
            # Who answers without having heard the question (a refusal, say) answers the first one.
            self._early += data
            return
        if self.status < 200:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.upgraded = True
            self._leftover = data[upgrade.args[0] :]
            # An end that comes now is for whoever takes the connection over, not for us.
            self._reading_paused = True
            self._transport.pause_reading()
        except httptools.HttpParserCallbackError:
            raise  # ours, not theirs
        except httptools.HttpParserError as error:
            begins = not self.status and self._head_bytes == len(data)
            self._fail(HttpError(_malformed(data if begins else b"HTTP/", error)))
        if self.status < 200 and self._head_bytes > HEAD_BYTES and not self.upgraded:
            self._fail(HttpError("the answer's head is too large"))
        if self._buffered > READ_AHEAD and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._wakeup.wake()

    def eof_received(self) -> bool:
        until_close = self.status >= 200 and not {
            "content-length",
            "transfer-encoding",
        }.intersection(self.headers)
        if until_close:
            self._whole, self._keep_alive = True, False
            self._wakeup.wake()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if error is None:
            # uvloop comes here at once when a TLS peer ends its connection without saying so.
            self.eof_received()
        if self._error is None:
            self._error = HttpError(str(error) if error else "the server closed the connection")
        if not self.lost.done():
            self.lost.set_result(None)
        self._forget(self)
        del self._parser  # which has us: two that have each other wait for the garbage collector
        self._wakeup.wake()

    def _fail(self, error: HttpError) -> None:
        if self._error is None:
            self._error = error
        self._transport.abort()

    # The parser's callbacks.

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status >= 200:
            return  # trailers
        key, text = name_of_header(name), value.decode(errors="replace")
        if key == "set-cookie":
            self.cookies.append(text)
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        status: int = self._parser.get_status_code()
        if self._whole:
            # More than one answer to one request: whoever that is, it is not speaking to us.
            self._fail(HttpError("an answer that nobody asked for"))
            return
        if status < 200 and status != 101:
            self.headers, self.cookies = {}, []  # 100 Continue and the like: more is to come
            return
        self.status = status
        self._keep_alive = self._parser.should_keep_alive()
        if self._method == "HEAD" or (has_no_body(status) and status != 101):
            # The parser would wait for the body that the headers announce.
            self._whole = True
            self._parser = _response_parser(self)

    def on_body(self, part: bytes) -> None:
        self._chunks.append(part)
        self._buffered += len(part)

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self._whole = True


def _malformed(beginning: bytes, error: Exception) -> str:
    """In Go's words where it is no HTTP at all."""
    if beginning.startswith(b"HTTP/"):
        return f"malformed HTTP response: {error}"
    line = beginning.partition(b"\n")[0].rstrip(b"\r").decode(errors="replace")
    broken = "net/http: HTTP/1.x transport connection broken"
    return f"{broken}: malformed HTTP response {json.dumps(line)}"


def _response_parser(reader: object) -> httptools.HttpResponseParser:
    """As lenient as Go's: a line may end without its CR. What answers probes and stands behind the
    proxy is anybody's server, a shell script among them."""
    parser = httptools.HttpResponseParser(reader)
    parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
    return parser
