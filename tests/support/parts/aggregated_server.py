"""A small API server behind an APIService, as an author of one would write it.

Job: serve teas.tea.example.com/v1: discovery, list, Table, get, create, delete, watch, an upgrade
    and OpenAPI; believe nobody but the front proxy, and note whom it speaks for.
Invariant: whoever shows no certificate of the front proxy's authority gets no further than TLS.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from sampan.api.objects import Obj
from sampan.core.http.messages import Connection, Reply, Request, Response, Stream, Upgrade
from sampan.core.http.server import Server
from sampan.core.tls import server_context
from tests.support.parts.certificates import Pair

GROUP, VERSION = "tea.example.com", "v1"
PATH = f"/apis/{GROUP}/{VERSION}"
_JSON = (("content-type", "application/json"),)
_TABLE = "as=Table"
_VERBS = ["create", "delete", "get", "list", "watch"]
_TEA = {"group": GROUP, "version": VERSION, "kind": "Tea"}


class TeaServer:
    def __init__(self) -> None:
        self.teas: dict[str, Obj] = {}
        self.asked: list[Request] = []
        self.is_healthy = True
        self.answer: Reply | None = None  # instead of everything but discovery
        self._revision = 0
        self._watchers: set[asyncio.Queue[bytes]] = set()

    async def handle(self, request: Request) -> Reply:
        self.asked.append(request)
        if not self.is_healthy:
            return Response(500, (), b"no tea today")
        path = request.path.rstrip("/")
        match path.removeprefix(PATH).split("/")[1:] if path.startswith(PATH) else [path]:
            case []:
                return _reply(resource_list())
            case ["/openapi/v2"]:
                return _reply(openapi_v2())
            case ["/openapi/v3"]:
                url = f"/openapi/v3/{PATH[1:]}?hash=1"
                return _reply({"paths": {PATH[1:]: {"serverRelativeURL": url}}})
            case ["/openapi/v3/apis/tea.example.com/v1"]:
                return _reply(openapi_v3())
        if self.answer is not None:
            return self.answer
        return self._teas(request, path)

    def _teas(self, request: Request, path: str) -> Reply:
        match path.removeprefix(PATH).split("/")[1:]:
            case ["namespaces", namespace, "teas"] if request.method == "POST":
                return self._created(namespace, orjson.loads(request.body))
            case ["namespaces", _, "teas"] | ["teas"] if "watch=" in request.query:
                return Stream(200, _JSON, self._events())
            case ["namespaces", namespace, "teas"]:
                return self._listed(request, namespace)
            case ["teas"]:
                return self._listed(request, "")
            case ["namespaces", namespace, "teas", name, "steep"]:
                return Upgrade((("connection", "Upgrade"), ("upgrade", "tea")), _steep)
            case ["namespaces", namespace, "teas", name]:
                return self._one(request, f"{namespace}/{name}", name)
        return Response(404, (), b"404 page not found\n")

    def _one(self, request: Request, key: str, name: str) -> Reply:
        tea = self.teas.get(key)
        if tea is None:
            return _reply(_failure(404, "NotFound", f'teas.{GROUP} "{name}" not found'), 404)
        if request.method == "DELETE":
            self._revision += 1
            self._tell("DELETED", self.teas.pop(key))
        return _reply(_table([tea], self._revision) if _wants_table(request) else tea)

    def _listed(self, request: Request, namespace: str) -> Reply:
        found = [
            tea
            for key, tea in sorted(self.teas.items())
            if not namespace or key.startswith(f"{namespace}/")
        ]
        if request.method == "DELETE":
            for tea in found:
                del self.teas[f"{tea['metadata']['namespace']}/{tea['metadata']['name']}"]
        if _wants_table(request):
            return _reply(_table(found, self._revision))
        metadata = {"resourceVersion": str(self._revision)}
        head = {"kind": "TeaList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": metadata}
        return _reply({**head, "items": found})

    def _created(self, namespace: str, tea: Obj) -> Reply:
        self._revision += 1
        name = tea["metadata"]["name"]
        tea["metadata"] |= {
            "namespace": namespace,
            "uid": f"tea-{self._revision}",
            "resourceVersion": str(self._revision),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        self.teas[f"{namespace}/{name}"] = tea
        self._tell("ADDED", tea)
        return _reply(tea, 201)

    def _tell(self, what: str, tea: Obj) -> None:
        for watcher in self._watchers:
            watcher.put_nowait(orjson.dumps({"type": what, "object": tea}) + b"\n")

    async def _events(self) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        for tea in self.teas.values():
            queue.put_nowait(orjson.dumps({"type": "ADDED", "object": tea}) + b"\n")
        self._watchers.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.discard(queue)


async def _steep(connection: Connection) -> None:
    """Every byte comes back."""
    while data := await connection.read():
        await connection.write(data)
    connection.close()


@contextmanager
def served_teas(
    pair: Pair, proxy_ca: Path, host: str, port: int = 0
) -> Iterator[tuple[TeaServer, int]]:
    """From a thread of its own; the server, and its port."""
    teas = TeaServer()
    ports: list[int] = []
    loops: list[asyncio.AbstractEventLoop] = []
    ready, over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        server = tea_listener(teas, pair, proxy_ca)
        ports.append(await server.start(host, port))
        loops.append(asyncio.get_running_loop())
        ready.set()
        await over.wait()
        await server.stop(0.1)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="served-teas")
    thread.start()
    assert ready.wait(60), "the aggregated server did not start"
    try:
        yield teas, ports[0]
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join(20)


def tea_listener(teas: TeaServer, pair: Pair, proxy_ca: Path) -> Server:
    tls = server_context(pair.cert_path, pair.key_path, proxy_ca, require_client_cert=True)
    return Server(teas.handle, ssl_context=tls)


def resource_list() -> Obj:
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}"}
    tea = {
        "name": "teas", "singularName": "tea", "namespaced": True, "kind": "Tea",
        "verbs": _VERBS, "shortNames": ["cuppa"], "categories": ["drinks"],
    }  # fmt: skip
    steep = {"name": "teas/steep", "singularName": "", "namespaced": True, "kind": "Tea",
             "verbs": ["get"]}  # fmt: skip
    return {**head, "resources": [tea, steep]}


def _schema() -> Obj:
    return {
        "description": "Tea is a drink.",
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "leaves": {"description": "Of which tree.", "type": "string"},
        },
        "x-kubernetes-group-version-kind": [_TEA],
    }


def _operation(schema_prefix: str) -> Obj:
    answer = {"description": "OK"}
    kind = {"x-kubernetes-action": "get", "x-kubernetes-group-version-kind": _TEA}
    ref = {"$ref": f"{schema_prefix}com.example.tea.v1.Tea"}
    if schema_prefix.startswith("#/definitions"):
        return {"operationId": "readTea", "responses": {"200": {**answer, "schema": ref}}, **kind}
    content = {"application/json": {"schema": ref}}
    return {"operationId": "readTea", "responses": {"200": {**answer, "content": content}}, **kind}


def openapi_v2() -> Obj:
    path = f"{PATH}/namespaces/{{namespace}}/teas/{{name}}"
    elsewhere = {"get": {"operationId": "notOurs", "responses": {"200": {"description": "OK"}}}}
    return {
        "swagger": "2.0",
        "info": {"title": "Tea", "version": "v1"},
        "paths": {path: {"get": _operation("#/definitions/")}, "/apis/apps/v1/": elsewhere},
        "definitions": {"com.example.tea.v1.Tea": _schema(), "com.example.Unused": {}},
    }


def openapi_v3() -> Obj:
    path = f"{PATH}/namespaces/{{namespace}}/teas/{{name}}"
    return {
        "openapi": "3.0.0",
        "info": {"title": "Tea", "version": "v1"},
        "paths": {path: {"get": _operation("#/components/schemas/")}},
        "components": {"schemas": {"com.example.tea.v1.Tea": _schema()}},
    }


def _wants_table(request: Request) -> bool:
    return _TABLE in request.headers.get("accept", "")


def _table(teas: list[Obj], revision: int) -> Obj:
    def column(name: str, kind: str = "") -> Obj:
        return {"name": name, "type": "string", "format": kind, "description": "", "priority": 0}

    rows = [{"cells": [tea["metadata"]["name"], tea.get("leaves", "")], "object": tea}
            for tea in teas]  # fmt: skip
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": str(revision)},
        "columnDefinitions": [column("Name", "name"), column("Leaves")],
        "rows": rows,
    }


def _failure(code: int, reason: str, message: str) -> Obj:
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**head, "message": message, "reason": reason, "code": code}


def _reply(obj: Obj, code: int = 200) -> Response:
    return Response(code, _JSON, orjson.dumps(obj))
