"""How a life reaches its cluster: requests by path, on the wire or in this process.

Job: `call` answers with code and object, whatever the code is; `watch` gives a kind's changes.
Invariant: nothing is repeated by itself: what a server refuses once is part of the life.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import orjson

from sampan.api.objects import Obj
from sampan.apiserver.authn.user import MASTERS
from sampan.apiserver.server import ApiServer
from sampan.client.kubeconfig import Connection
from sampan.client.rest import context_of
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Response, Stream
from tests.support.generators.api_requests import request

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
USER_AGENT = "lives/1.0"
PAUSE_SECONDS = 0.3
Headers = Sequence[tuple[str, str]]


class Transport(Protocol):
    async def call(
        self,
        method: str,
        path: str,
        body: Obj | list[Obj] | None = None,
        content_type: str = JSON,
        headers: Headers = (),
    ) -> tuple[int, Obj]: ...

    def watch(self, path: str) -> AsyncIterator[tuple[str, Obj]]:
        """What is there as ADDED, then each change; again from a list where the watch ends."""


class InProcess:
    """The API server of this process, behind its HTTP edge."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def call(
        self,
        method: str,
        path: str,
        body: Obj | list[Obj] | None = None,
        content_type: str = JSON,
        headers: Headers = (),
    ) -> tuple[int, Obj]:
        wire = _request(method, path, body, content_type, headers)
        reply = await self._server.handle_http(wire)
        assert isinstance(reply, Response), reply
        return reply.status, _object(reply.whole())

    async def watch(self, path: str) -> AsyncIterator[tuple[str, Obj]]:
        while True:
            code, listed = await self.call("GET", path)
            if code == 200:
                for obj in listed.get("items") or ():
                    yield "ADDED", obj
                wire = _request("GET", _watch_path(path, listed), None, JSON)
                reply = await self._server.handle_http(wire)
                if isinstance(reply, Stream):
                    async for chunk in reply.chunks:
                        for change in _changes(chunk.splitlines()):
                            yield change
            await asyncio.sleep(PAUSE_SECONDS)


class OverHttps:
    """Another cluster, as a kubeconfig names it."""

    def __init__(self, connection: Connection) -> None:
        self._http = HttpClient(ssl_context=context_of(connection))
        self._server = connection.server
        token = [("authorization", f"Bearer {connection.token}")] if connection.token else []
        self._headers = [("accept", JSON), ("user-agent", USER_AGENT), *token]

    async def call(
        self,
        method: str,
        path: str,
        body: Obj | list[Obj] | None = None,
        content_type: str = JSON,
        headers: Headers = (),
    ) -> tuple[int, Obj]:
        data = b"" if body is None else orjson.dumps(body)
        sent = [*self._headers, *headers, *([("content-type", content_type)] if data else [])]
        answer = await self._http.request(
            method, self._server + path, headers=sent, body=data, timeout_seconds=60.0
        )
        return answer.status, _object(answer.body)

    async def watch(self, path: str) -> AsyncIterator[tuple[str, Obj]]:
        while True:
            code, listed = await self.call("GET", path)
            if code == 200:
                for obj in listed.get("items") or ():
                    yield "ADDED", obj
                try:
                    async for change in self._changes(_watch_path(path, listed)):
                        yield change
                except HttpError:
                    pass  # ended by the server: from a new list
            await asyncio.sleep(PAUSE_SECONDS)

    async def _changes(self, path: str) -> AsyncIterator[tuple[str, Obj]]:
        stream = await self._http.stream(
            "GET", self._server + path, headers=self._headers, timeout_seconds=60.0
        )
        rest = b""
        try:
            async for chunk in stream:
                *lines, rest = (rest + chunk).split(b"\n")
                for change in _changes(lines):
                    yield change
        finally:
            await stream.aclose()

    async def close(self) -> None:
        await self._http.close()


def _request(  # type: ignore[no-untyped-def]  # of core.http
    method: str, path: str, body: Obj | list[Obj] | None, content_type: str, headers: Headers = ()
):
    sent: dict[str, list[str]] = {"user-agent": [USER_AGENT]}
    for name, text in (*headers, *([("content-type", content_type)] if body else [])):
        sent.setdefault(name, []).append(text)
    return request(method, path, body, "admin", MASTERS, sent)


def _watch_path(path: str, listed: Obj) -> str:
    mark = "&" if "?" in path else "?"
    return f"{path}{mark}watch=1&resourceVersion={listed['metadata']['resourceVersion']}"


def _changes(lines: list[bytes]) -> list[tuple[str, Obj]]:
    events = [orjson.loads(line) for line in lines if line.strip()]
    return [(event["type"], event["object"]) for event in events if event["type"] != "ERROR"]


def _object(body: bytes) -> Obj:
    try:
        found: Obj = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {"message": body.decode(errors="replace")}
    return found
