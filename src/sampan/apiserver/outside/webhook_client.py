"""Calls that the server makes to others on a request's behalf: webhooks of every kind.

Job: POST one JSON document, read one back, within a deadline.
Invariant: a redirect is a failure, never followed: it would carry the request's content elsewhere.
Invariant: an answer larger than the client's bound, or that is no JSON object, is a failure.
"""

import ssl
from collections.abc import Callable

import orjson

from sampan.api.objects import Obj
from sampan.apiserver.outside.refusal_words import refusal_words
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.failure_words import failure_words
from sampan.core.telemetry.trace_context import HEADER, current_header

SHOWN_BYTES = 2048  # of a refusal that is no Status


class CallFailed(Exception):
    """The other side could not be asked, or did not answer sensibly; the text says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to call, and how to know them."""

    url: str
    tls: Callable[[], ssl.SSLContext] | None = None  # None: the system's own trust
    server_name: str = ""  # whom the certificate must name, where that is not the URL's host
    token: str = ""
    shown_url: str = ""  # what messages call it, where that is another name


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
        try:
            answer = await self._client().request(
                "POST",
                self._target.url,
                headers=headers,
                body=orjson.dumps(document),
                timeout_seconds=timeout_seconds,
            )
        except (HttpError, OSError) as error:
            url = self._target.shown_url or self._target.url
            raise CallFailed(f'Post "{url}": {failure_words(error)}') from error
        if answer.status not in (200, 201):
            raise CallFailed(_refusal(answer.status, answer.body))
        try:
            found = orjson.loads(answer.body)
        except ValueError as error:
            raise CallFailed("the answer is no JSON") from error
        if not isinstance(found, dict):
            raise CallFailed("the answer is no JSON object")
        return found

    @property
    def is_idle(self) -> bool:
        return self._calls == 0

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    def _client(self) -> HttpClient:
        if self._http is None:
            target = self._target
            context = None
            if target.url.startswith("https:"):
                context = target.tls() if target.tls else ssl.create_default_context()
            self._http = HttpClient(ssl_context=context, server_hostname=target.server_name or None)
        return self._http


def _refusal(code: int, body: bytes) -> str:
    """What a Status says, or what the code stands for."""
    try:
        told = orjson.loads(body)
    except ValueError:
        told = None
    if isinstance(told, dict) and told.get("kind") == "Status" and told.get("message"):
        return str(told["message"])
    return refusal_words(code, body[:SHOWN_BYTES].decode(errors="replace").strip())
