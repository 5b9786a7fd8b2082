"""The API for a command: one request after the other, no event loop.

Job: what a Connection says becomes requests; answers become dicts, bytes or ApiErrors.
Invariant: every answer's warnings reach `on_warning`, in their order, each once.
Invariant: an answer with Retry-After is waited for, at most RETRIES times.
"""

import base64
import os
import ssl
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sampan.api.errors import ApiError, from_status
from sampan.api.objects import Obj
from sampan.client import json_bytes
from sampan.client.kubeconfig import Connection, KubeconfigError
from sampan.core import tls
from sampan.core.digits import is_digits
from sampan.core.http import blocking
from sampan.core.http.blocking import Answer, HttpFailure, Stream
from sampan.core.patterns import lazy_pattern

if TYPE_CHECKING:
    from sampan.client.channels import ChannelSocket

RETRIES = 10
Query = dict[str, str] | list[tuple[str, str]]
JSON = "application/json"
_IS_PLAIN = lazy_pattern(r"[A-Za-z0-9_.~-]*")  # what a query has as it is


class NoAnswer(ConnectionError):
    """The server cannot be reached; `refused` when nobody listens there."""

    def __init__(self, server: str, why: str, *, refused: bool = False) -> None:
        super().__init__(why)
        self.server, self.why, self.refused = server, why, refused

    def text_for(self, method: str, target: str) -> str:
        """As Go's client says it: what was asked, and what came of it."""
        return f'{method.capitalize()} "{self.server}{target}": {self.why}'


class BlockingClient:
    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str = "kubectl/sampan",
        on_warning: Callable[[str], None] = lambda text: None,
        timeout_seconds: float | None = None,
    ) -> None:
        self.connection = connection
        self._user_agent, self._on_warning = user_agent, on_warning
        self._identity: list[tuple[str, str]] | None = None
        self._timeout_seconds = timeout_seconds
        self._http = blocking.BlockingHttp(
            connection.server,
            self._context,
            server_name=connection.tls_server_name,
            proxy=connection.proxy_url,
            timeout_seconds=timeout_seconds,
        )

    @property
    def server(self) -> str:
        return self.connection.server

    def json(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        *,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Obj:
        answer = self.ask(method, path, query, body=body, content_type=content_type, accept=accept)
        try:
            value: Obj = json_bytes.loads(answer.body)
        except ValueError:
            raise from_status({"message": f"not JSON: {answer.body[:200]!r}"}) from None
        return value

    def ask(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        *,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        raw: bool = False,
    ) -> Answer:
        """The whole answer of a request that succeeded; else the ApiError that it stands for.
        `raw`: it is for a path, whatever that may be."""
        target = with_query(path, query)
        if body is not None and not isinstance(body, bytes):
            body = json_bytes.dumps(body)
        content: bytes = body or b""
        headers = self._headers(accept, content_type if content else "")
        for attempt in range(RETRIES + 1):
            try:
                answer = self._http.request(method, target, headers, content)
            except HttpFailure as error:
                raise self._no_answer(error) from error
            self._warn(answer.warnings)
            if answer.status < 400:
                return answer
            pause = answer.headers.get("retry-after", "")
            if attempt == RETRIES or not is_digits(pause) or answer.status not in (429, 503):
                break
            time.sleep(min(float(pause), 60.0))
        raise failure_of(answer.status, answer.body, "" if raw else method, target)

    def stream(self, path: str, query: Query | None = None, *, accept: str = JSON) -> Stream:
        target = with_query(path, query)
        try:
            stream = self._http.stream("GET", target, self._headers(accept, ""))
            self._warn(stream.warnings)
            if stream.status < 400:
                return stream
            try:
                body = stream.rest()
            finally:
                stream.close()
        except HttpFailure as error:
            raise NoAnswer(self.server, str(error), refused=error.refused) from error
        raise failure_of(stream.status, body)

    def pass_on(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes
    ) -> Stream:
        """Somebody else's request, in our name: whatever the answer, it is theirs to read."""
        try:
            return self._http.stream(method, target, [*headers, *self.identity()], body)
        except HttpFailure as error:
            raise self._no_answer(error) from error

    def watch(
        self, path: str, query: dict[str, str], *, accept: str = JSON, seconds: float | None = None
    ) -> Iterator[tuple[str, Obj]]:
        """(type, object) until the server ends it, or the time is over; an ERROR is raised."""
        stream = self.stream(path, {**query, "watch": "true"}, accept=accept)
        given = [limit for limit in (seconds, self._timeout_seconds) if limit is not None]
        stream.end_after(min(given) if given else None)
        rest = b""
        try:
            for chunk in stream:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    event = json_bytes.loads(line)
                    if event["type"] == "ERROR":
                        raise from_status(event["object"])
                    yield event["type"], event["object"]
        except HttpFailure as error:
            raise NoAnswer(self.server, str(error)) from error
        finally:
            stream.close()

    def websocket(self, path: str, query: Query, protocol: str) -> "ChannelSocket":
        """A WebSocket whose messages begin with a channel's number."""
        from sampan.client.channels import ChannelSocket

        headers = [
            ("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13"),
            ("sec-websocket-key", base64.b64encode(os.urandom(16)).decode()),
            ("sec-websocket-protocol", protocol), *self._headers("*/*", ""),
        ]  # fmt: skip
        target = with_query(path, query)
        try:
            link, answer, rest = self._http.upgrade(target, headers)
        except HttpFailure as error:
            raise NoAnswer(self.server, str(error), refused=error.refused) from error
        if answer.status != 101:
            raise failure_of(answer.status, answer.body)
        return ChannelSocket(link, rest)

    def identity(self) -> list[tuple[str, str]]:
        """The headers that say who we are."""
        if self._identity is None:
            try:
                self._identity = identity_headers(self.connection)
            except KubeconfigError as error:
                raise NoAnswer(self.server, str(error)) from error
        return self._identity

    def close(self) -> None:
        self._http.close()

    def _headers(self, accept: str, content_type: str) -> list[tuple[str, str]]:
        headers = [("accept", accept), ("user-agent", self._user_agent), *self.identity()]
        if content_type:
            headers.append(("content-type", content_type))
        return headers

    def _no_answer(self, error: HttpFailure) -> NoAnswer:
        why = str(error)
        # After the handshake a server that does not take our certificate only closes: as an end, a
        # reset or an alert, whichever comes first.
        is_closed = any(text in why.lower() for text in ("eof", "reset", "broken pipe", "alert"))
        if is_closed and self.connection.pair is not None:
            why += " (it may refuse our certificate: of another cluster, or expired?)"
        return NoAnswer(self.server, why, refused=error.refused)

    def _context(self) -> Any:
        try:
            return context_of(self.connection)
        except KubeconfigError as error:
            raise NoAnswer(self.server, str(error)) from error

    def _warn(self, warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            parts = warning.split(" ", 2)
            if len(parts) == 3 and parts[0] == "299":
                self._on_warning(_unquote(parts[2]))


def with_query(path: str, query: Query | None) -> str:
    if not query:
        return path
    pairs = list(query.items()) if isinstance(query, dict) else query
    if all(_IS_PLAIN.fullmatch(word) for pair in pairs for word in pair):
        return f"{path}?{'&'.join(f'{key}={value}' for key, value in pairs)}"
    from urllib.parse import urlencode

    return f"{path}?{urlencode(pairs)}"


def context_of(connection: Connection) -> Any:
    try:
        return tls.client_context(
            ca_data=connection.ca,
            pair_data=connection.pair,
            verify=not connection.insecure_skip_tls_verify,
        )
    except (ssl.SSLError, ValueError) as error:
        raise KubeconfigError(f"the kubeconfig's certificates cannot be used: {error}") from error


def identity_headers(connection: Connection) -> list[tuple[str, str]]:
    headers: list[tuple[str, str]] = []
    token = connection.token
    if connection.token_file:
        try:
            with open(connection.token_file) as file:
                token = file.read().strip()
        except OSError as error:
            raise KubeconfigError(f"open {connection.token_file}: {error.strerror}") from error
    if token:
        headers.append(("authorization", f"Bearer {token}"))
    elif connection.username:
        pair = f"{connection.username}:{connection.password}".encode()
        headers.append(("authorization", f"Basic {base64.b64encode(pair).decode()}"))
    if connection.impersonate:
        headers.append(("impersonate-user", connection.impersonate))
    if connection.impersonate_uid:
        headers.append(("impersonate-uid", connection.impersonate_uid))
    headers += [("impersonate-group", group) for group in connection.impersonate_groups]
    for key, value in connection.impersonate_extra:
        headers.append((f"impersonate-extra-{key}", value))
    return headers


def failure_of(code: int, body: bytes, method: str = "", target: str = "") -> ApiError:
    try:
        value: Any = json_bytes.loads(body)
    except ValueError:
        value = None
    if isinstance(value, dict) and value.get("kind") == "Status":
        error = from_status(value, code)
        error.reason = value.get("reason") or ""
        return error
    from sampan.api import bare_answers

    text = body[:2048].decode(errors="replace").strip()
    return bare_answers.error_of(code, text, method, target)


def _unquote(text: str) -> str:
    """The quoted text of a Warning header."""
    text = text.strip()
    if not text.startswith('"'):
        return text
    out, at = [], 1
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 1
        out.append(text[at])
        at += 1
    return "".join(out)
