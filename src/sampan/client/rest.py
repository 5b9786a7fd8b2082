"""The API over HTTPS: the Client that parts use when the server is another process.

Job: verbs to requests and answers to dicts; a watch is a stream of JSON lines.
Invariant: every failure is an ApiError: a Status as what it says, no answer as ServiceUnavailable
    or Timeout.
Invariant: an answer with Retry-After is waited for and the request repeated, at most RETRIES times.
"""

import asyncio
import base64
import math
import random
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import orjson

from sampan.api.errors import (
    ApiError,
    InternalError,
    ServiceUnavailable,
    Timeout,
    UnknownPath,
    from_status,
)
from sampan.api.kinds import listed_resources
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.api.resources import Resource
from sampan.client.contract import (
    NO_PARAMETERS,
    NO_PRECONDITIONS,
    WHOLE,
    Listed,
    Page,
    Patch,
    PatchType,
    Preconditions,
    Propagation,
    WatchEvent,
)
from sampan.client.kubeconfig import Connection, KubeconfigError
from sampan.core import tls
from sampan.core.clock import Clock
from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import ClientStream, HttpClient
from sampan.core.http.errors import HttpError, HttpTimeout
from sampan.core.http.messages import Headers
from sampan.core.log import get_logger

log = get_logger(__name__)

RETRIES = 10  # as client-go
LONGEST_PAUSE_SECONDS = 60.0
TOKEN_SECONDS = 60.0
# As client-go's reflector: watches end by themselves after 5 to 10 minutes and are resumed.
WATCH_SECONDS = (300, 600)
SILENCE_SECONDS = 30.0  # how long after its end a watch may stay silent before it counts as dead
CONTENT_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}

Query = Mapping[str, str]


class Identity(Protocol):
    """Who we are."""

    async def headers(self) -> Headers:
        """That say so. Raises ApiError where it is not to be found out now."""

    def refused(self) -> None:
        """The server does not know them (any more): the next ones should be fresh."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and how long it waits. `identity` is asked for each request, so that a rotated
    token is used at once."""

    identity: "Identity"
    user_agent: str = "sampan"
    timeout_seconds: float = 30.0


class RestClient:
    """Implements client.contract.Client."""

    def __init__(
        self,
        http: HttpClient,
        server: str,
        caller: "Caller",
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._http, self._server = http, server.rstrip("/")
        self._clock, self._rng = clock, rng
        self._identity, self._user_agent = caller.identity, caller.user_agent
        self._timeout_seconds = caller.timeout_seconds

    async def get(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        parameters: Mapping[str, str] = NO_PARAMETERS,
    ) -> Obj:
        path = path_of(resource, namespace, name, subresource)
        return await self._ask("GET", path, dict(parameters))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        revision: int | None = None,
        page: Page = WHOLE,
    ) -> Listed:
        query = _selectors(label_selector, field_selector)
        if revision is not None:
            query["resourceVersion"] = str(revision)
            if revision:
                query["resourceVersionMatch"] = "NotOlderThan"
        if page.limit:
            query["limit"] = str(page.limit)
        if page.continue_token:
            query["continue"] = page.continue_token
        answer = await self._ask("GET", path_of(resource, namespace), query)
        meta = answer.get("metadata") or {}
        items: list[Obj] = answer.get("items") or []
        for item in items:
            # Other servers leave these out of a list's items; whoever reads one counts on them.
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        return Listed(items, int(meta.get("resourceVersion") or 0), meta.get("continue") or "")

    async def resources(self, group: str, version: str) -> Sequence[Resource]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return listed_resources(await self._ask("GET", path), group, version)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        revision: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        seconds = self._rng.randint(*WATCH_SECONDS)
        query = {
            **_selectors(label_selector, field_selector),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(revision),
            "timeoutSeconds": str(seconds),
        }
        stream = await self._open(path_of(resource, namespace), query)
        try:
            async with aclosing(_lines(stream, seconds + SILENCE_SECONDS)) as lines:
                async for line in lines:
                    yield _watch_event(line)
        finally:
            await stream.aclose()

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        namespace: str = "",
        *,
        subresource: str = "",
        name: str = "",
    ) -> Obj:
        where = path_of(resource, namespace or namespace_of(obj), name, subresource)
        return await self._ask("POST", where, body=orjson.dumps(obj))

    async def update(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        where = path_of(resource, namespace_of(obj), name_of(obj), subresource)
        return await self._ask("PUT", where, body=orjson.dumps(obj))

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Patch,
        *,
        patch_type: PatchType = "strategic",
        subresource: str = "",
    ) -> Obj:
        query = {"fieldManager": self._user_agent, "force": "true"} if patch_type == "apply" else {}
        return await self._ask(
            "PATCH",
            path_of(resource, namespace, name, subresource),
            query,
            body=orjson.dumps(patch),
            content_type=CONTENT_TYPES[patch_type],
        )

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        grace_seconds: int | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
        propagation: Propagation | None = None,
    ) -> Obj:
        options: Obj = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation is not None:
            options["propagationPolicy"] = propagation
        given: Obj = {}
        if preconditions.uid:
            given["uid"] = preconditions.uid
        if preconditions.revision:
            given["resourceVersion"] = str(preconditions.revision)
        if given:
            options["preconditions"] = given
        where = path_of(resource, namespace, name)
        return await self._ask("DELETE", where, body=orjson.dumps(options))

    async def get_path(self, path: str) -> Obj:
        """What is served besides resources, by its path."""
        return await self._ask("GET", path)

    async def post_path(self, path: str, body: Obj) -> Obj:
        return await self._ask("POST", path, body=orjson.dumps(body))

    async def close(self) -> None:
        await self._http.close()

    async def _ask(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        *,
        body: bytes = b"",
        content_type: str = "application/json",
    ) -> Obj:
        url = self._url(path, query or {})
        for attempt in range(RETRIES + 1):
            headers = await self._headers(content_type if body else "")
            try:
                answer = await self._http.request(
                    method,
                    url,
                    headers=headers,
                    body=body,
                    timeout_seconds=self._timeout_seconds,
                )
            except HttpError as error:
                raise _no_answer(error) from error
            if answer.status < 400:
                return _object(answer.body)
            failure = self._failure(answer.status, answer.headers, answer.body)
            if attempt == RETRIES or not await self._wait(answer.headers, failure):
                raise failure
        raise AssertionError("unreachable")

    async def _open(self, path: str, query: Query) -> ClientStream:
        headers = await self._headers("")
        try:
            stream = await self._http.stream(
                "GET",
                self._url(path, query),
                headers=headers,
                timeout_seconds=self._timeout_seconds,
            )
        except HttpError as error:
            raise _no_answer(error) from error
        if stream.status < 400:
            return stream
        try:
            body = b"".join([chunk async for chunk in stream])
        except HttpError as error:
            raise _no_answer(error) from error
        finally:
            await stream.aclose()
        raise self._failure(stream.status, stream.headers, body)

    def _failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
        if status == 401:
            self._identity.refused()
        return _failure(status, headers, body)

    async def _wait(self, headers: Mapping[str, str], failure: ApiError) -> bool:
        """Whether the server asked us to come back, and we have waited for that long."""
        if "retry-after" not in headers or failure.retry_after_seconds is None:
            return False
        await self._clock.sleep(min(float(failure.retry_after_seconds), LONGEST_PAUSE_SECONDS))
        return True

    async def _headers(self, content_type: str) -> Headers:
        headers = [("accept", "application/json"), ("user-agent", self._user_agent)]
        if content_type:
            headers.append(("content-type", content_type))
        return [*headers, *await self._identity.headers()]

    def _url(self, path: str, query: Query) -> str:
        return f"{self._server}{path}?{urlencode(query)}" if query else f"{self._server}{path}"


def connect(
    connection: Connection,
    *,
    clock: Clock,
    rng: random.Random | None = None,
    user_agent: str = "sampan",
    context: ssl.SSLContext | None = None,
    identity: Identity | None = None,
) -> RestClient:
    """A client for what a kubeconfig says; `context` and `identity` are the caller's own where it
    renews them."""
    if connection.proxy_url:
        raise KubeconfigError("proxy-url: only the client's commands go through a proxy")
    context = context or context_of(connection)
    http = HttpClient(ssl_context=context, server_hostname=connection.tls_server_name or None)
    caller = Caller(identity or Credentials(connection, clock), user_agent)
    return RestClient(http, connection.server, caller, clock=clock, rng=rng or random.Random())


def without_identity(connection: Connection) -> Connection:
    """Where the API is, and nobody who asks it: a server takes who shows a certificate for its
    owner, whatever token is shown beside it."""
    return replace(
        connection, certificate=None, key=None, token="", token_file="", username="",
        password="", impersonate="", impersonate_groups=(),
    )  # fmt: skip


def context_of(connection: Connection) -> ssl.SSLContext:
    return tls.client_context(
        ca_data=connection.ca,
        pair_data=connection.pair,
        verify=not connection.insecure_skip_tls_verify,
    )


class Credentials:
    """Who we are, as headers. A token file is read again after TOKEN_SECONDS: it is rotated."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection, self._clock = connection, clock
        self._token, self._read_at = connection.token, -math.inf

    async def headers(self) -> list[tuple[str, str]]:
        connection = self._connection
        headers: list[tuple[str, str]] = []
        if token := self._current_token():
            headers.append(("authorization", f"Bearer {token}"))
        elif connection.username:
            pair = f"{connection.username}:{connection.password}".encode()
            headers.append(("authorization", f"Basic {base64.b64encode(pair).decode()}"))
        if connection.impersonate:
            headers.append(("impersonate-user", connection.impersonate))
        headers += [("impersonate-group", group) for group in connection.impersonate_groups]
        return headers

    def refused(self) -> None:
        self._read_at = -math.inf

    def _current_token(self) -> str:
        path = self._connection.token_file
        now = self._clock.monotonic()
        if path and now - self._read_at >= TOKEN_SECONDS:
            try:
                self._token = Path(path).read_text().strip()
                self._read_at = now
            except OSError as error:
                log.warning("token file cannot be read, keeping the last token", error=error)
        return self._token


def path_of(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """`/apis/apps/v1/namespaces/NAMESPACE/deployments/NAME/scale`."""
    parts = [resource.path]
    if namespace and resource.namespaced:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(resource.plural)
    if name:
        parts.append(quote(name, safe="*"))  # of all, in the paths of custom metrics
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    query = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in query.items() if value}


async def _lines(stream: ClientStream, silence_seconds: float) -> AsyncGenerator[bytes, None]:
    """Whole lines; a watch that stays silent for too long is a failure: its server may be gone."""
    rest = b""
    chunks = aiter(stream)
    while True:
        try:
            async with asyncio.timeout(silence_seconds):
                chunk = await anext(chunks, b"")
        except HttpError as error:
            raise _no_answer(error) from error
        except TimeoutError as error:
            raise Timeout("the watch has been silent for too long") from error
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line


def _watch_event(line: bytes) -> WatchEvent:
    event = _object(line)
    obj = event.get("object") or {}
    if event.get("type") == "ERROR":
        raise from_status(obj)
    return WatchEvent(str(event.get("type")), obj)


def _object(body: bytes) -> Obj:
    try:
        value: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InternalError(f"the server's answer is not JSON: {body[:200]!r}") from error
    if not isinstance(value, dict):
        raise InternalError(f"the server's answer is not an object: {body[:200]!r}")
    return value


def _failure(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    try:
        value: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict) and value.get("kind") == "Status":
        failure = from_status(value, code)
    else:
        text = body[:1000].decode(errors="replace").strip() or f"the server answered {code}"
        failure = UnknownPath(text) if code == 404 else from_status({"message": text}, code)
    pause = headers.get("retry-after", "")
    if failure.retry_after_seconds is None and is_digits(pause):
        failure.retry_after_seconds = int(pause)
    return failure


def _no_answer(error: HttpError) -> ApiError:
    kind = Timeout if isinstance(error, HttpTimeout) else ServiceUnavailable
    return kind(str(error))
