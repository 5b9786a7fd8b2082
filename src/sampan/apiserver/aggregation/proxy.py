"""Proxy to aggregated servers.

Job: pass a request on in the name of whoever sent it, and its answer back.
Invariant: the caller is known and allowed before this is asked; the other server learns who it is
    from our headers, beside our own certificate, and from nothing that the caller sent.
Invariant: the other server sends nobody elsewhere: a redirect is refused.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import orjson

from sampan.api.errors import Unserved
from sampan.apiserver.aggregation.identity_headers import identity_headers, public_headers
from sampan.apiserver.aggregation.servers import AggregatedServer, AggregatedServers
from sampan.apiserver.authn.user import User
from sampan.apiserver.outside.webhook_client import CallFailed
from sampan.apiserver.write.request_scope import RequestScope
from sampan.core.digits import is_digits
from sampan.core.http.client import ClientStream, HttpClient
from sampan.core.http.errors import AddressNotAllowed, HttpError, HttpTimeout
from sampan.core.http.failure_words import failure_words
from sampan.core.http.messages import Headers, Reply, Request, Response, Stream
from sampan.core.http.origin import Target
from sampan.core.http.relay import end_to_end, pass_upgrade, wants_upgrade
from sampan.core.log import get_logger
from sampan.core.telemetry.trace_context import HEADER, current_header

log = get_logger(__name__)

HEAD_SECONDS = 60.0  # for an answer to begin, and a small one to end, but for a watch's
WHOLE_BYTES = 256 * 1024  # of an answer that is handed on in one piece
_PLAIN = (("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff"))
_JSON = (("content-type", "application/json"),)
_REDIRECTED = b"the backend attempted to redirect this request, which is not permitted"
_NOT_BACK = frozenset({"access-control-allow-origin", "date"})  # the latter is told once


class AggregatedProxy:
    def __init__(self, servers: AggregatedServers, scope: RequestScope) -> None:
        self._servers, self._scope = servers, scope

    async def reply(
        self, server: AggregatedServer, request: Request, user: User, *, is_watch: bool = False
    ) -> Reply:
        """Raises Unserved; of scripted metrics ApiError."""
        if server.is_scripted:
            return self._scripted(request)
        if not server.is_available:
            raise Unserved("service unavailable")
        if server.http is None:
            return Response(500, _PLAIN, f"{server.trouble}\n".encode())
        try:
            origin = self._servers.origin(server)
        except CallFailed as error:
            log.error("aggregated server not found", name=server.name, error=error)
            raise Unserved("service unavailable") from error
        query = f"?{request.query}" if request.query else ""
        target = Target(origin, f"{request.path}{query}")
        headers = public_headers(request.headers)
        more = [*_forwarded(request), *identity_headers(user)]
        if trace := current_header():
            headers.pop(HEADER, None)
            more.append((HEADER, trace))
        asked = replace(request, headers=headers)
        if any("\n" in text or "\r" in text for _, text in more):
            raise Unserved("error trying to reach service: net/http: invalid header field value")
        try:
            if wants_upgrade(request):
                return await pass_upgrade(server.http, asked, target, more=more)
            seconds = None if is_watch else HEAD_SECONDS
            return await _exchange(server.http, asked, target, more, seconds)
        except HttpError as error:
            told = str(error) if isinstance(error, AddressNotAllowed) else failure_words(error)
            raise Unserved(f"error trying to reach service: {told}") from error

    def _scripted(self, request: Request) -> Response:
        from sampan.apiserver.aggregation.scripted_metrics import ScriptedMetrics  # few have any

        scope = self._scope
        scripted = ScriptedMetrics(scope.registry, scope.settings.scripts_of, scope.clock)
        return Response(200, _JSON, orjson.dumps(scripted.answer(request)))


def _forwarded(request: Request) -> Headers:
    """Where the request came from, as proxies say it."""
    lines = [("x-forwarded-uri", request.path)]
    if "host" in request.headers:
        lines.append(("x-forwarded-host", request.headers["host"]))
    if request.remote:
        lines.append(("x-forwarded-for", request.remote))
    return lines


async def _exchange(
    http: HttpClient, request: Request, target: Target, more: Headers, seconds: float | None
) -> Reply:
    stream = await http.stream(
        request.method, target, headers=[*end_to_end(request.headers), *more], body=request.body,
        timeout_seconds=seconds,
    )  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            return await _passed_back(request, stream)
    except TimeoutError as error:
        await stream.aclose()
        raise HttpTimeout(f"{request.method} {target}: no whole answer in time") from error


async def _passed_back(request: Request, stream: ClientStream) -> Reply:
    """What is small as a whole, everything else as it comes."""
    if 300 <= stream.status < 400 and stream.headers.get("location"):
        await stream.aclose()
        return Response(502, _PLAIN, _REDIRECTED)
    back = end_to_end(stream.headers, without=_NOT_BACK)
    length = stream.headers.get("content-length", "")
    if request.method == "HEAD" or (is_digits(length) and int(length) <= WHOLE_BYTES):
        return Response(stream.status, back, b"".join([part async for part in stream]))
    return Stream(stream.status, back, _chunks(stream))


async def _chunks(stream: ClientStream) -> AsyncIterator[bytes]:
    try:
        async for chunk in stream:
            yield chunk
    finally:
        await stream.aclose()
