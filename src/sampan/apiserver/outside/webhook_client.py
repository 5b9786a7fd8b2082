"""Calls that the server makes to others on a request's behalf: webhooks of every kind.

Job: POST one JSON document, read one back, within a deadline.
Invariant: a redirect is a failure, never followed: it would carry the request's content elsewhere.
Invariant: an answer that is too large, or of too many values, is a failure; a large one is read
    beside the loop.
Invariant: an answer that is no JSON object is a failure.
"""

import asyncio
import ssl
from collections.abc import Callable

import orjson

from sampan.api import json_reading
from sampan.api.decode_scalars import json_word
from sampan.api.json_bounds import TOO_MANY, has_too_many_values
from sampan.api.objects import Obj
from sampan.apiserver.outside.refusal_words import refusal_words
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import ClientResponse, HttpClient, PeerCheck
from sampan.core.http.errors import HttpError
from sampan.core.http.failure_words import failure_words
from sampan.core.telemetry.trace_context import HEADER, current_header
from sampan.core.tls import client_context

_KIND_HOLDER = (
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
SHOWN_BYTES = 2048  # of a refusal that is no Status
ANSWER_BYTES = 8 << 20  # a patch may say all of an object again, written in base64
REFUSAL_BYTES, AT_ONCE_BYTES = 64 << 10, 64 << 10


class CallFailed(Exception):
    """The other side could not be asked, or did not answer sensibly; the text says why."""


class NotCallable(CallFailed):
    """Nobody can be asked with such a configuration."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to call, and how to know them."""

    url: str
    tls: Callable[[], ssl.SSLContext] | None = None  # None: the system's own trust
    server_name: str = ""  # whom the certificate must name, where that is not the URL's host
    token: str = ""
    shown_url: str = ""  # what messages call it, where that is another name
    trust: bytes = b""  # who may have signed its certificate, in PEM: judged as Go does, not by tls


class Caller:
    """One connection pool per target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._http: HttpClient | None = None
        self._calls = 0  # under way

    async def post(self, document: Obj, timeout_seconds: float) -> Obj:
        """Raises CallFailed."""
        self._calls += 1
        try:
            return await self._post(document, timeout_seconds)
        finally:
            self._calls -= 1

    async def _post(self, document: Obj, timeout_seconds: float) -> Obj:
        headers = [("content-type", "application/json"), ("accept", "application/json")]
        if trace := current_header():
            headers.append((HEADER, trace))
        if self._target.token:
            headers.append(("authorization", f"Bearer {self._target.token}"))
        body = orjson.dumps(document)
        try:
            answer = await self._client().request(
                "POST",
                self._target.url,
                headers=headers,
                body=body,
                timeout_seconds=timeout_seconds,
                most_bytes=ANSWER_BYTES,
            )
        except (HttpError, OSError) as error:
            url = self._target.shown_url or self._target.url
            raise CallFailed(f'Post "{url}": {failure_words(error)}') from error
        if not 200 <= answer.status <= 206:
            raise CallFailed(_refusal(answer))
        if len(answer.body) > AT_ONCE_BYTES:
            return await asyncio.to_thread(_object_in, answer)
        return _object_in(answer)

    @property
    def is_idle(self) -> bool:
        return self._calls == 0

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    def _client(self) -> HttpClient:
        """Raises NotCallable."""
        if self._http is None:
            target = self._target
            self._http = HttpClient(
                ssl_context=_context(target) if target.url.startswith("https:") else None,
                server_hostname=target.server_name or None,
                checks=_checks(target.trust) if target.trust else None,
            )
        return self._http


def _context(target: Target) -> ssl.SSLContext:
    if target.tls is not None:
        return target.tls()
    return client_context(verify=not target.trust)


def _checks(trust: bytes) -> PeerCheck:
    # With the first of them: it loads a library.
    from sampan.core.certificates.chain import checked_by

    try:
        return checked_by(trust)
    except ValueError as error:
        raise NotCallable(f"unable to load root certificates: {error}") from error


def _object_in(answer: ClientResponse) -> Obj:
    """Raises CallFailed, in the words of client-go's decoder, which takes what is no JSON for YAML:
    a text, mostly."""
    if not answer.body:
        media = answer.headers.get("content-type", "")
        raise CallFailed(
            f"0-length response with status code: {answer.status} and content type: {media}"
        )
    head = "couldn't get version/kind; json parse error"
    if has_too_many_values(answer.body):
        raise CallFailed(f"{head}: {TOO_MANY}")
    try:
        found = json_reading.loads(answer.body)
    except ValueError as error:
        if answer.body.lstrip().startswith(b"{"):
            raise CallFailed(f"{head}: {error}") from error
        found = answer.body.decode(errors="replace")
    if found is not None and not isinstance(found, dict):
        raise CallFailed(f"{head}: json: cannot unmarshal {json_word(found)} into {_KIND_HOLDER}")
    return found or {}


def _refusal(answer: ClientResponse) -> str:
    """What a Status says, or what the code stands for; only a text is told as it is."""
    try:
        told = orjson.loads(answer.body[:REFUSAL_BYTES])
    except ValueError:
        told = None
    if isinstance(told, dict) and told.get("kind") == "Status" and told.get("message"):
        return str(told["message"])
    is_text = answer.headers.get("content-type", "text/").startswith("text/")
    text = answer.body[:SHOWN_BYTES].decode(errors="replace").strip() if is_text else "unknown"
    return refusal_words(answer.status, text)
