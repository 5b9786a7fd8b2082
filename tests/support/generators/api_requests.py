"""The API server as an HTTP client sees it, without sockets.

Job: `async with api_server(schema) as api: reply = await api.post("/api/v1/…", {...})`.
Invariant: a request carries a real client certificate; there is no way around authentication.
"""

import datetime
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sampan.api.objects import Obj
from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import MASTERS
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Request, Response, Stream
from sampan.core.metrics import Metrics
from sampan.store.contract import Store
from sampan.store.open import open_store
from tests.support.virtual_time import LoopClock

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
# Answers of 500 and above that the original gives, too: 504; a Binding without a good target; an
# apply with a field that the schema does not have, or with a number that its type cannot hold; an
# item of a strategic merge patch without its merge key. (In whatever form they were asked for.)
AS_UPSTREAM = (
    b"ResourceVersionTooLarge",
    b"resourceVersion: Invalid value: ",
    b"target.name: ",
    b"target.kind: ",
    b"failed to create typed patch object",
    b"failed to convert new object",
    b"does not contain declared merge key",
)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def obj(self) -> Obj:
        found: Obj = orjson.loads(self.body)
        return found

    @property
    def message(self) -> str:
        return str(self.obj.get("message", ""))

    @property
    def items(self) -> list[str]:
        """The names in a list."""
        return [item["metadata"]["name"] for item in self.obj["items"]]


class Api:
    def __init__(self, server: ApiServer, store: Store) -> None:
        self.server = server
        self.store = store

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str = "admin",
        group: str = MASTERS,
        headers: Mapping[str, str | Sequence[str]] | None = None,
    ) -> Reply:
        reply = await self.server.handle_http(request(method, path, body, user, group, headers))
        assert isinstance(reply, Response), reply
        found: dict[str, str] = {}
        for name, text in reply.headers:
            found[name] = f"{found[name]}, {text}" if name in found else text
        return Reply(reply.status, found, reply.whole())

    async def get(self, path: str, accept: str = "") -> Reply:
        return await self.send("GET", path, headers={"accept": accept} if accept else {})

    async def post(self, path: str, body: Any) -> Reply:
        return await self.send("POST", path, body)

    async def put(self, path: str, body: Any) -> Reply:
        return await self.send("PUT", path, body)

    async def patch(self, path: str, body: Any, kind: str = STRATEGIC) -> Reply:
        return await self.send("PATCH", path, body, headers={"content-type": kind})

    async def delete(self, path: str, body: Any = None) -> Reply:
        return await self.send("DELETE", path, body)

    async def made(self, path: str, body: Any) -> Obj:
        """POST that must succeed."""
        reply = await self.post(path, body)
        assert reply.status == 201, reply.body
        return reply.obj

    async def watch(self, path: str, accept: str = "") -> "WatchedApi":
        mark = "&" if "?" in path else "?"
        headers = {"accept": accept} if accept else {}
        asked = request("GET", f"{path}{mark}watch=true", None, "admin", MASTERS, headers)
        reply = await self.server.handle_http(asked)
        assert isinstance(reply, Stream), reply
        return WatchedApi(reply)


class WatchedApi:
    """Events of one watch, as they come over the wire."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._waiting: list[Obj] = []

    async def next(self) -> Obj | None:
        """The next event; None when the watch has ended."""
        while not self._waiting:
            try:
                chunk = await self._stream.chunks.__anext__()
            except StopAsyncIteration:
                return None
            self._waiting = [orjson.loads(line) for line in chunk.splitlines()]
        return self._waiting.pop(0)

    async def seen(self, count: int) -> list[tuple[str, str]]:
        """The next `count` events as (type, name)."""
        found = []
        for _ in range(count):
            event = await self.next()
            assert event is not None, "the watch has ended"
            found.append((event["type"], event["object"]["metadata"].get("name", "")))
        return found

    async def close(self) -> None:
        await self._stream.chunks.aclose()  # type: ignore[attr-defined]  # streams can be closed


@asynccontextmanager
async def api_server(
    schema: Schema,
    store: Store | str = "memory:",
    settings: ApiServerSettings | None = None,
    clock: Clock | None = None,
    metrics: Metrics | None = None,
) -> AsyncIterator[Api]:
    clock = clock or LoopClock()
    if isinstance(store, str):
        store = await open_store(store, clock)
    server = ApiServer(store, schema, settings or ApiServerSettings(), clock, metrics or Metrics())
    await server.start()
    try:
        yield Api(server, store)
    finally:
        await server.stop()
        await store.close()


def pod(name: str, **spec: Any) -> Obj:
    """A pod that is good as it is."""
    container = {"name": "main", "image": "registry.example/app:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def request(
    method: str,
    path: str,
    body: Any,
    user: str,
    group: str,
    headers: Mapping[str, str | Sequence[str]] | None,
) -> Request:
    """A header with several values has a line for each."""
    path, _, query = path.partition("?")
    given = headers or {}
    joined = {
        key: item if isinstance(item, str) else ", ".join(item) for key, item in given.items()
    }
    lines = {key: item for key, item in given.items() if not isinstance(item, str)}
    data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    certificate = client_certificate(user, group) if user else None
    return Request(method, path, query, joined, data, peer_certificate=certificate, repeated=lines)


@lru_cache(maxsize=64)
def client_certificate(user: str, group: str) -> bytes:
    """DER, as the TLS layer hands it on after it has verified it."""
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)] if user else []
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    name = x509.Name(parts)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC))
    )
    return built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
