"""Bytes to requests, replies to bytes: HTTP/1.x without a socket or a clock.

Job: `RequestReader` turns the bytes of one connection into requests; `render_*` write answers.
Invariant: how the bytes were split never changes what is read.
Invariant: a refusal or an upgrade is the last thing that a reader yields (until `decline_upgrade`).
Invariant: nothing that a reader keeps outgrows `Limits`, whatever the other side sends.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus

import httptools

from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import NOT_REPEATED, Headers, Limits, Request

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_STATUS_LINES = {code: f"HTTP/1.1 {code} {text}\r\n" for code, text in _REASONS.items()}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_COMMON_NAMES = (
    "accept",
    "accept-encoding",
    "accept-language",
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "host",
    "impersonate-group",
    "impersonate-user",
    "kubectl-command",
    "kubectl-session",
    "location",
    "origin",
    "referer",
    "retry-after",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "sec-websocket-version",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-forwarded-for",
    "x-stream-protocol-version",
)
# As sent by Go (Title-Case) and by others: looked up instead of decoded and lowered per request.
_NAMES: Mapping[bytes, str] = {
    spelled.encode(): name for name in _COMMON_NAMES for spelled in (name, name.title())
}

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def http_date(now: float) -> str:
    """As a Date header has it, in English whatever the locale is."""
    at = datetime.fromtimestamp(now, UTC)
    return f"{_DAYS[at.weekday()]}, {at:%d} {_MONTHS[at.month - 1]} {at:%Y %H:%M:%S} GMT"


@dataclass(slots=True)
class Arrived:
    """A request that is whole, and what its framing says about the answer."""

    request: Request
    keep_alive: bool
    chunks_allowed: bool  # not to HTTP/1.0
    upgrade: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Not a request: answer this, then close."""

    status: int
    why: str


def name_of_header(raw: bytes) -> str:
    known = _NAMES.get(raw)
    return known if known is not None else raw.decode("latin-1").lower()


class RequestReader:
    """One connection's requests, in order, in `arrived`."""

    __slots__ = (
        "_asked",
        "_begun_at",
        "_body",
        "_body_size",
        "_fed_without_progress",
        "_feeding",
        "_head_done",
        "_headers",
        "_limits",
        "_parser",
        "_progress",
        "_repeated",
        "_seen",
        "_target",
        "_too_large",
        "arrived",
        "continue_due",
        "ended",
        "in_message",
        "leftover",
        "peer_certificate",
        "remote",
    )

    def __init__(
        self, limits: Limits, remote: str = "", peer_certificate: bytes | None = None
    ) -> None:
        self._limits = limits
        self.remote, self.peer_certificate = remote, peer_certificate
        self.arrived: list[Arrived | Refusal] = []  # seldom more than one
        self.ended = False  # nothing more will be parsed
        self.leftover = b""  # what came after an upgrade's head
        self.in_message = False  # some of the next request is here, but not all of it
        self.continue_due = False  # the client waits for 100 before it sends the body
        self._headers: dict[str, str] = {}
        self._repeated: dict[str, list[str]] | None = None
        self._target = b""
        self._body: list[bytes] = []
        self._body_size = 0
        self._head_done = self._too_large = self._asked = False
        self._progress = self._fed_without_progress = 0
        self._seen = self._feeding = self._begun_at = 0  # bytes: in all, in this feed, at the start
        self._parser = httptools.HttpRequestParser(self)

    def let_go(self) -> None:
        """Nothing more will be fed: the parser and its callbacks would keep each other."""
        self.ended = True
        del self._parser

    @property
    def in_body(self) -> bool:
        return self.in_message and self._head_done

    def feed(self, data: bytes) -> None:
        if self.ended:
            # Only an upgrade wants what follows; the connection pauses reading to bound it.
            self.leftover += data
            return
        before = self._progress
        self._feeding = len(data)
        self._seen += self._feeding
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if not self.ended:
                self.ended = True
                self.leftover = data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError:
            raise  # ours, not theirs
        except httptools.HttpParserError as error:
            self._refuse(400, str(error) or "malformed request")
        if self.in_message and not self.ended:
            self._bound_what_is_kept(len(data), before)

    def at_once(self, size: int) -> int:
        """How much may be fed without more than so many bytes of requests in it: what is known to
        be a body does not count."""
        if not self.in_body:
            return size
        return max(size, int(self._headers.get("content-length") or 0) - self._body_size)

    @property
    def buffered(self) -> int:
        """Bytes of the body that is arriving."""
        return self._body_size

    def asks(self, limit: int) -> bool:
        """Whether more than `limit` of a body is to come, or has come, of a request whose head is
        here. Once for each."""
        if self._asked or not self.in_body or self.ended:
            return False
        length = int(self._headers.get("content-length") or 0)
        self._asked = max(length, self._body_size) > limit
        return self._asked

    def head(self) -> Request:
        """The request that is arriving, without its body."""
        path, query = _split_target(self._target)
        return Request(
            self._parser.get_method().decode(), path, query, self._headers, b"", False,
            self.peer_certificate, self.remote, self._repeated or NOT_REPEATED,
        )  # fmt: skip

    def refuse_body(self) -> None:
        """Nobody wants to read it: the handler words the answer, as to one that is too large."""
        if self.in_body:
            self._body_refused()

    def refuse(self, status: int, why: str) -> None:
        self._refuse(status, why)

    def decline_upgrade(self) -> None:
        """The answer was an ordinary one: what follows is HTTP again."""
        rest, self.leftover, self.ended = self.leftover, b"", False
        self._parser = httptools.HttpRequestParser(self)
        if rest:
            self.feed(rest)

    def _bound_what_is_kept(self, fed: int, progress_before: int) -> None:
        """A head, a trailer or a chunk extension without end has no callback that could count it;
        but every feed that got no further was spent on it."""
        if self._progress != progress_before:
            self._fed_without_progress = 0
            return
        self._fed_without_progress += fed
        if self._fed_without_progress > self._limits.header_bytes:
            self._refuse(431, "request header fields too large")

    def _refuse(self, status: int, why: str) -> None:
        if not self.ended:
            self.ended = True
            self.in_message = self.continue_due = False
            self.arrived.append(Refusal(status, why))

    # The parser's callbacks. They never raise: what is wrong becomes a Refusal.

    def on_message_begin(self) -> None:
        if self.ended:
            return
        self.in_message = True
        self._progress += 1
        self._begun_at = self._seen - self._feeding
        self._headers = {}
        self._repeated = None
        self._target = b""
        self._head_done = self._too_large = self._asked = False

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_done:
            return  # trailers: nobody here reads them
        key = _NAMES.get(name) or name.decode("latin-1").lower()
        headers = self._headers
        text = value.decode(errors="replace")
        if key in headers:
            if key == "host":
                self._refuse(400, "more than one Host header")
            self._repeated = self._repeated or {}
            self._repeated.setdefault(key, [headers[key]]).append(text)
            return
        headers[key] = text

    def on_headers_complete(self) -> None:
        self._progress += 1
        self._head_done = True
        headers = self._headers
        for key, lines in (self._repeated or {}).items():
            headers[key] = ("; " if key == "cookie" else ", ").join(lines)
        if "content-length" in headers or "transfer-encoding" in headers:
            self._expect_body(headers)
        if self._seen - self._begun_at > self._limits.header_bytes:
            self._check_head_size()  # only where it may be: the sum costs more than this bound

    def _expect_body(self, headers: dict[str, str]) -> None:
        if int(headers.get("content-length") or 0) > self._limits.body_bytes:
            self._body_refused()
        elif (expected := headers.get("expect")) is None:
            return
        elif expected.lower() == "100-continue":
            self.continue_due = True
        else:
            self._refuse(417, f"unknown expectation {expected!r}")

    def _check_head_size(self) -> None:
        size = len(self._target) + sum(len(k) + len(v) + 4 for k, v in self._headers.items())
        if size > self._limits.header_bytes:
            self._refuse(431, "request header fields too large")

    def on_body(self, part: bytes) -> None:
        self._progress += 1
        if self.ended:
            return
        self._body_size += len(part)
        if self._body_size > self._limits.body_bytes:
            self._body_refused()
            return
        self.continue_due = False
        self._body.append(part)

    def _body_refused(self) -> None:
        """The handler words the answer; nothing after this head is read."""
        if not self.ended:
            self._too_large = True
            self.on_message_complete()
            self.ended = True

    def on_message_complete(self) -> None:
        if self.ended:
            return None
        self.in_message = self.continue_due = False
        self._progress += 1
        headers = self._headers
        keep_alive: bool = self._parser.should_keep_alive()
        chunks_allowed = True
        if not keep_alive or "connection" in headers:
            version = self._parser.get_http_version()
            if version not in ("1.1", "1.0"):
                return self._refuse(505, f"HTTP/{version} is not spoken here")
            chunks_allowed = version == "1.1"
        if chunks_allowed and "host" not in headers:
            return self._refuse(400, "missing required Host header")
        path, query = _split_target(self._target)
        upgrade = self._parser.should_upgrade()
        if upgrade and (
            headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        ):
            return self._refuse(400, "a request for an upgrade must not have a body")
        body = b"".join(self._body) if self._body and not self._too_large else b""
        self._body, self._body_size = [], 0
        request = Request(
            self._parser.get_method().decode(),
            path,
            query,
            headers,
            body,
            self._too_large,
            self.peer_certificate,
            self.remote,
            self._repeated or NOT_REPEATED,
        )
        keep_alive = keep_alive and not self._too_large
        self.arrived.append(Arrived(request, keep_alive, chunks_allowed, upgrade))
        return None


def _split_target(target: bytes) -> tuple[str, str]:
    text = target.decode(errors="replace")
    if not text.startswith("/") and "://" in text:  # absolute form, as sent to a proxy
        _, _, rest = text.partition("://")
        _, slash, path = rest.partition("/")
        text = slash + path or "/"
    path, _, query = text.partition("?")
    return path, query


def render_head(status: int, headers: Headers, framing: str) -> bytes:
    """Status line, headers and `framing` (whole header lines), up to the empty line."""
    line = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} \r\n"
    lines = [f"{name}: {value}\r\n" for name, value in headers]
    text = f"{line}{''.join(lines)}{framing}\r\n"
    # A line break inside a value would let whoever chose the value write headers of their own.
    if text.count("\n") != len(lines) + framing.count("\n") + 2 or text.count("\r") != text.count(
        "\n"
    ):
        raise ValueError(f"line break in a header: {headers!r}")
    return text.encode()


def render_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def has_no_body(status: int) -> bool:
    return status == 204 or status == 304 or status < 200


def refusal_body(refusal: Refusal) -> bytes:
    reason = _REASONS.get(refusal.status, "")
    return f"{refusal.status} {reason}: {refusal.why}\n".encode()
