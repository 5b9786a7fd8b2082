"""The servers that are asked the same: one on the wire, one of this process.

Job: `send` takes a request as it is written and gives back the whole answer, whatever it is; a
    watch is read until the server ends it.
Invariant: nothing is repeated, nothing is read into an answer.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import MASTERS
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.kubeconfig import Connection, load
from sampan.client.rest import context_of
from sampan.core.clock import Clock, SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Response, Stream
from tests.support.generators.api_requests import api_server, request

SECONDS = 60.0


@cache
def settings() -> ApiServerSettings:
    """As the original is started beside which answers are recorded."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return ApiServerSettings(
        service_cidrs=("10.96.0.0/16",),
        client_ca_pem=b"PEM",
        mount_service_account_tokens=True,
        token_signing_key_pem=pem,
    )


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    headers: Mapping[str, str]
    body: bytes


class Server(Protocol):
    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """`target`: path and query as they are sent."""


class OnTheWire:
    """As a kubeconfig names it. A connection that is broken off answers 0."""

    def __init__(self, connection: Connection) -> None:
        self._http = HttpClient(ssl_context=context_of(connection))
        self._server = connection.server
        self._own = {"authorization": f"Bearer {connection.token}"} if connection.token else {}

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        sent = [*self._own.items(), *headers.items()]
        try:
            answer = await self._http.request(
                method, self._server + target, headers=sent, body=body, timeout_seconds=SECONDS
            )
        except HttpError as error:
            return Answer(0, {}, str(error).encode())
        return Answer(answer.status, answer.headers, answer.body)

    async def close(self) -> None:
        await self._http.close()


class InProcess:
    """The API server of this process, behind its HTTP edge."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        asked = request(method, target, body or None, "admin", MASTERS, headers)
        reply = await self._server.handle_http(asked)
        if isinstance(reply, Stream):
            text = b"".join([chunk async for chunk in reply.chunks])
            return Answer(reply.status, dict(reply.headers), text)
        if not isinstance(reply, Response):
            return Answer(reply.status, dict(reply.headers), b"")
        found: dict[str, str] = {}
        for name, value in reply.headers:
            found[name] = f"{found[name]}, {value}" if name in found else value
        return Answer(reply.status, found, b"" if method == "HEAD" else reply.whole())


@asynccontextmanager
async def server_at(place: str, clock: Clock | None = None) -> AsyncIterator[Server]:
    """The file of a kubeconfig, or `here`: a new one of this process."""
    if place == "here":
        async with api_server(
            Schema.load(), settings=settings(), clock=clock or SystemClock()
        ) as api:
            yield InProcess(api.server)
        return
    wire = OnTheWire(load(place, {}, "/").connection())
    try:
        yield wire
    finally:
        await wire.close()
