"""One request: from a client of the Ingress to an endpoint, and the answer back.

Job: refuse what is no business of a backend, choose an endpoint, pass the request on.
Invariant: who the client is (X-Forwarded-*, X-Real-IP) is what we see, never what it says.
Invariant: a request is framed anew from what was read of it: no byte of a body is taken for the
    next request, and no header of one connection goes on to the next.
Invariant: a backend that could not be connected to was not asked: another one is; one that was
    asked is not asked again.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from http import HTTPStatus

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import ClientStream, HttpClient
from sampan.core.http.errors import HttpError, HttpTimeout, Unreachable
from sampan.core.http.messages import Headers, Limits, Reply, Request, Response, Stream
from sampan.core.http.origin import Origin, Target
from sampan.core.http.relay import end_to_end, pass_upgrade, wants_upgrade
from sampan.core.log import get_logger
from sampan.network.ingress.backends import Unavailable
from sampan.network.ingress.routing import host_of, plain_path

log = get_logger(__name__)
# A body is read before it is passed on, as nginx does it.
LIMITS = Limits(
    body_bytes=16 * 1024 * 1024, header_bytes=32 * 1024, connections=4096,
    connections_per_client=2048, bodies_bytes=256 * 1024 * 1024,
    bodies_bytes_per_client=64 * 1024 * 1024,
)  # fmt: skip
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 60.0  # nginx' proxy-read-timeout is a minute, too
SILENT_SECONDS = 600.0  # of an answer that has begun
ATTEMPTS = 3  # endpoints
_REFUSED_METHODS = frozenset({"CONNECT", "TRACE"})
# Other versions of HTTP on the same connection: their requests would pass by the rules.
_REFUSED_UPGRADES = ("h2", "http", "tls")
_OURS = frozenset({"forwarded", "x-real-ip", "x-original-url", "x-rewrite-url", "expect"})
_NO_ANSWER = {502: "the backend did not answer in HTTP", 504: "the backend took too long"}
_NOT_ANSWERED = frozenset({"date", "set-cookie"})  # told by the server; told line by line


@dataclass(frozen=True, slots=True)
class Listener:
    scheme: str
    port: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and what rules compare of it."""

    listener: Listener
    host: str
    path: str
    request: Request


def unchanged(request: Request) -> Request:
    return request


def as_it_is(headers: Headers) -> Headers:
    return headers


@dataclass(frozen=True, slots=True)
class Way:
    """Who may be asked, and what is changed on the way there and back."""

    endpoints: Sequence[Origin]
    there: Callable[[Request], Request] = unchanged
    back: Callable[[Headers], Headers] = as_it_is
    answer_seconds: float = ANSWER_SECONDS


# Who answers; a Response where that is nobody's business but ours.
Find = Callable[[Asked], Way | Unavailable | Response]


class Forwarding:
    def __init__(self, find: Find, http: HttpClient, rng: random.Random) -> None:
        self._find, self._http, self._rng = find, http, rng

    async def answer(self, listener: Listener, request: Request) -> Reply:
        if request.method in _REFUSED_METHODS:
            return refusal(405, f"{request.method} is not passed on")
        if request.body_too_large:
            return refusal(413, f"a body has at most {LIMITS.body_bytes} bytes")
        path = plain_path(request.path)
        if path is None:
            return refusal(400, "the path does not begin at the root, or leads out of it")
        host = host_of(request.headers.get("host", ""))
        way = self._find(Asked(listener, host, path, request))
        if isinstance(way, Unavailable):
            return refusal(way.status, way.why)
        if isinstance(way, Response):
            return way
        return await self._ask_one_of(way, way.there(forwarded(request, listener)))

    async def _ask_one_of(self, way: Way, request: Request) -> Reply:
        status = 502
        for endpoint in self._rng.sample(way.endpoints, min(ATTEMPTS, len(way.endpoints))):
            try:
                return await self._ask(endpoint, request, way)
            except HttpError as error:
                log.info("backend of an Ingress did not answer", endpoint=endpoint, error=error)
                status = 504 if isinstance(error, HttpTimeout) else 502
                if not isinstance(error, Unreachable):
                    return refusal(status, _NO_ANSWER[status])
        return refusal(status, "no endpoint of the backend could be connected to")

    async def _ask(self, endpoint: Origin, request: Request, way: Way) -> Reply:
        query = f"?{request.query}" if request.query else ""
        url = Target(endpoint, f"{request.path}{query}")
        host = (("host", request.headers.get("host") or endpoint.authority),)
        if wants_upgrade(request) and not _speaks_http(request.headers["upgrade"]):
            reply = await pass_upgrade(self._http, request, url, more=host)
            if isinstance(reply, Response):
                reply.headers = way.back([line for line in reply.headers if line[0] != "date"])
            return reply
        stream = await self._http.stream(
            request.method, url, headers=[*end_to_end(request.headers), *host],
            body=request.body, timeout_seconds=way.answer_seconds,
        )  # fmt: skip
        told = way.back(answered(stream))
        return Stream(stream.status, told, _chunks_of(stream), _length_of(stream))


def forwarded(request: Request, listener: Listener) -> Request:
    """The request as a backend sees it. Names with an underscore are dropped, as by nginx: to many
    a backend they are the same as those with a hyphen, which are ours to say."""
    kept = {
        name: value
        for name, value in request.headers.items()
        if "_" not in name and name not in _OURS and not name.startswith("x-forwarded-")
    }
    # A client may name them in Connection, to have them dropped.
    tokens = (token.strip() for token in kept.get("connection", "").lower().split(","))
    if "connection" in kept:
        kept["connection"] = ", ".join(
            token
            for token in tokens
            if token != "x-real-ip" and not token.startswith("x-forwarded-")
        )
    told = {
        "x-forwarded-for": request.remote,
        "x-forwarded-host": request.headers.get("host", ""),
        "x-forwarded-port": str(listener.port),
        "x-forwarded-proto": listener.scheme,
        "x-forwarded-scheme": listener.scheme,
        "x-real-ip": request.remote,
    }
    return replace(request, headers={**kept, **told})


def answered(stream: ClientStream) -> Headers:
    kept = [line for line in end_to_end(stream.headers) if line[0] not in _NOT_ANSWERED]
    return [*kept, *(("set-cookie", cookie) for cookie in stream.cookies)]


def refusal(status: int, why: str) -> Response:
    text = f"{status} {HTTPStatus(status).phrase}: {why}\n"
    return Response(status, (("content-type", "text/plain; charset=utf-8"),), text.encode())


def _speaks_http(protocol: str) -> bool:
    tokens = (token.strip() for token in protocol.lower().split(","))
    return any(token.startswith(_REFUSED_UPGRADES) for token in tokens)


def _length_of(stream: ClientStream) -> int | None:
    text = stream.headers.get("content-length", "")
    return int(text) if is_digits(text) and "transfer-encoding" not in stream.headers else None


async def _chunks_of(stream: ClientStream) -> AsyncIterator[bytes]:
    try:
        while True:
            try:
                async with asyncio.timeout(SILENT_SECONDS):
                    chunk = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise HttpTimeout("the rest of the answer does not come") from error
            yield chunk
    finally:
        await stream.aclose()
