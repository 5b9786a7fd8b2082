"""Non-resource documents: health, version, metrics, discovery, OpenAPI, keys.

Job: one reply per path; None where there is nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode

import orjson

from sampan.api.errors import NotAcceptable
from sampan.api.objects import Obj
from sampan.api.resources import MEASURED
from sampan.api.zpages.zpages import ZPages, zpage_paths
from sampan.apiserver.aggregation.aggregation import Aggregation
from sampan.apiserver.aggregation.foreign_documents import ForeignOpenApi
from sampan.apiserver.authn.tokens import Signer
from sampan.apiserver.http import replies
from sampan.apiserver.http.discovery import Discovery
from sampan.apiserver.http.health import Health, version
from sampan.apiserver.write.request_scope import RequestScope
from sampan.core.http.messages import Request, Response
from sampan.core.http.wire import http_date
from sampan.core.metrics import Metrics

if TYPE_CHECKING:
    from sampan.apiserver.openapi.endpoints import OpenApi, Packed

Document = Callable[[str], Awaitable[Obj | None]]  # of what follows its path; raises ApiError
Action = Callable[[Obj], Awaitable[Obj]]  # raises ApiError
NOT_KEPT = ("cache-control", "no-cache, private")
_VERSIONS = "/openapi/v3/"  # and a group version
_YEAR_SECONDS = 365 * 86400.0
_JSON, _KEYS = "application/json", "application/jwk-set+json"
_TEXT = ("content-type", "text/plain; charset=utf-8")
_METRICS = (
    ("content-type", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
    NOT_KEPT,
)


class Documents:
    def __init__(
        self,
        health: Health,
        metrics: Metrics,
        scope: RequestScope,
        signer: Signer | None,
        aggregation: Aggregation,
    ) -> None:
        schema, kinds, settings = scope.schema, scope.registry.kinds, scope.settings
        self._clock = scope.clock
        # Host and port by which clients reach this server.
        self._address = f"{settings.advertise_address}:{settings.advertise_port}"
        self._schema, self._aggregation = schema, aggregation
        self._openapi: OpenApi | None = None
        self._openapi_generation = (-1, -1)
        self._health = health
        self._metrics = metrics
        self._kinds, self._generation = kinds, (-1, -1)
        self._discovery = Discovery(())
        self._signer = signer
        self._zpages = ZPages("apiserver", scope.clock.now(), settings.flags, self._paths)
        self._more: dict[str, Document] = {}
        self.texts: dict[str, Callable[[str], str]] = {}  # from the query, by path; not listed
        self.actions: dict[str, Action] = {}  # what other parts do when they are asked to, by path

    def add(self, prefix: str, found: Document) -> None:
        """Other parts' read-only answers: `found` gets the path after the prefix."""
        self._more[prefix] = found

    async def reply(self, request: Request) -> Response | None:
        path = request.path
        if path in ("/api", "/apis") or path.startswith(("/api/", "/apis/")):
            return self._discovery_document(request)
        if path.startswith("/openapi/"):
            return await self._openapi_reply(request)
        if self._health.is_path(path):
            return self._health.reply(request)
        for prefix, found in self._more.items():
            if path.startswith(prefix):
                answer = await found(path[len(prefix) :])
                return None if answer is None else replies.object_reply(answer)
        if (shown := self.texts.get(path)) is not None:
            return Response(200, (_TEXT, NOT_KEPT), shown(request.query).encode())
        match path:
            case "/version" | "/version/":
                return replies.shown_reply(version())
            case "/metrics":
                return self._counted(request)
            case "/metrics/slis":
                return Response(200, _METRICS, self._health.slis().encode())
            case "/statusz" | "/flagz":
                return self._zpages.reply(request, self._clock.now())
            case "/" | "/index.html":
                return replies.shown_reply({"paths": self._paths()})
            case "/.well-known/openid-configuration" if self._signer is not None:
                return _issuer_document(_JSON, _openid(self._signer), self._signer)
            case "/openid/v1/jwks" if self._signer is not None:
                keys = {"keys": self._signer.public_jwks()}
                return _issuer_document(_KEYS, keys, self._signer)
        return None

    async def _openapi_reply(self, request: Request) -> Response:
        # Making a document takes a while the first time; others need not wait for it.
        foreign = self._aggregation.openapi()
        try:
            packed = await asyncio.to_thread(self._openapi_document, request, foreign)
        except NotAcceptable:  # as upstream: without a word
            return Response(406, (("vary", "Accept"), NOT_KEPT))
        if packed is None:
            return Response(404, (NOT_KEPT,))
        return _unpack(request, packed, self._clock.now())

    def _counted(self, request: Request) -> Response:
        if request.method != "DELETE":
            return Response(200, _METRICS, self._metrics.render().encode())
        self._metrics.reset()
        return Response(200, (_TEXT, NOT_KEPT), b"metrics reset\n")

    def _discovery_document(self, request: Request) -> Response | None:
        now = (self._kinds.generation, self._aggregation.generation)
        if self._generation != now:
            self._generation = now
            self._discovery = Discovery(
                (*self._kinds.all(), *MEASURED),
                server_address=self._address,
                elsewhere=self._aggregation.elsewhere(),
                priorities=self._aggregation.priorities(),
            )
        document = self._discovery.document(request.path, request.headers.get("accept", ""))
        if document is None:
            return None
        content_type = ("content-type", document.content_type)
        if not document.etag:
            return Response(200, (content_type, NOT_KEPT), document.body)
        headers = [
            content_type,
            ("etag", document.etag),
            ("vary", "Accept"),
            ("cache-control", "public"),
        ]
        if request.headers.get("if-none-match") == document.etag:
            return Response(304, headers)
        return Response(200, headers, document.body)

    def _openapi_document(
        self, request: Request, foreign: Mapping[str, ForeignOpenApi]
    ) -> "Packed | None":
        now = (self._kinds.generation, self._aggregation.openapi_generation)
        if self._openapi is None or self._openapi_generation != now:
            from sampan.apiserver.openapi.endpoints import OpenApi

            self._openapi_generation = now
            self._openapi = OpenApi(self._schema, self._kinds.all(), self._openapi, foreign)
        path, accept = request.path.rstrip("/"), request.headers.get("accept", "")
        if path == "/openapi/v2":
            return self._openapi.v2(accept)
        if path == "/openapi/v3":
            return self._openapi.index()
        if not path.startswith(_VERSIONS):
            return None
        return self._openapi.v3(path[len(_VERSIONS) :], accept)

    def _paths(self) -> list[str]:
        found = {"/api", "/apis", "/apis/", "/metrics", "/metrics/slis", "/version"}
        found |= {"/openapi/v2", "/openapi/v3", _VERSIONS, *self._health.paths()}
        found |= set(zpage_paths(bool(self._zpages.flags)))
        if self._signer is not None:
            found |= {"/.well-known/openid-configuration", "/openid/v1/jwks"}
        for row in (*self._kinds.all(), *MEASURED):
            found |= {row.path, row.path.rpartition("/")[0]}
        return sorted(found)


def _unpack(request: Request, packed: "Packed", now: float) -> Response:
    headers = [
        ("content-type", packed.content_type),
        ("etag", packed.etag),
        ("vary", "Accept, Accept-Encoding"),
    ]
    tag = packed.etag.strip('"')
    named = parse_qs(request.query).get("hash", [""])[0]
    if not named or not request.path.startswith(_VERSIONS):
        headers.append(NOT_KEPT)
    elif named != tag:
        path = quote(request.path.rstrip("/"))
        where = ("location", f"{path}?{urlencode({'hash': tag})}")
        return Response(301, [*headers, NOT_KEPT, where])
    else:  # what a hash names does not change
        expires = http_date(now + _YEAR_SECONDS).replace("GMT", "UTC")
        headers += [("cache-control", "public, immutable"), ("expires", expires)]
    if request.headers.get("if-none-match") == packed.etag:
        return Response(304, headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(200, [*headers, ("content-encoding", "gzip")], packed.gzip)
    return Response(200, headers, packed.body())


def _issuer_document(media: str, obj: Obj, signer: Signer) -> Response:
    age = ("cache-control", f"public, max-age={signer.keys_last_seconds()}")
    return Response(200, [("content-type", media), age], orjson.dumps(obj))


def _openid(signer: Signer) -> dict[str, object]:
    return {
        "issuer": signer.issuer,
        "jwks_uri": f"{signer.issuer}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": signer.algorithms,
    }
