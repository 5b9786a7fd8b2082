"""The whole ingress controller in this process, from the API to a backend that answers."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from sampan.api.resources import ENDPOINT_SLICES, EVENTS, INGRESSES, SERVICES
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Request, Response
from sampan.core.http.origin import Origin
from sampan.core.http.server import Server, bound_socket
from sampan.network.ingress.ingress import Ingress, IngressSettings
from tests.support.parts.certificates import Authority
from tests.support.worlds.control_plane import ControlPlane

PATIENCE_SECONDS = 60.0
T = TypeVar("T")


class IngressWorld:
    def __init__(self, plane: ControlPlane, http: int, https: int, authority: Authority) -> None:
        self.plane, self.http, self.https, self.authority = plane, http, https, authority
        self.client = plane.client

    async def add_service(
        self, name: str = "web", address: str = "10.244.0.5", node: str = "n1", **spec: object
    ) -> None:
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"ports": ports, **spec},
        }
        await self.client.create(SERVICES, service)
        if spec.get("type") == "ExternalName":
            return
        piece = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{name}-1",
                "namespace": "default",
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "nodeName": node}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }
        await self.client.create(ENDPOINT_SLICES, piece)

    async def add_ingress(
        self, name: str = "web", service: str = "web", host: str = "web.localhost", **spec: object
    ) -> None:
        backend = {"service": {"name": service, "port": {"name": "http"}}}
        paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
        ingress = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"rules": [{"host": host, "http": {"paths": paths}}], **spec},
        }
        await self.client.create(INGRESSES, ingress)

    async def status(self, host: str, path: str = "/") -> tuple[int, str]:
        """Of an answer, and its text."""
        http = HttpClient()
        try:
            url = f"http://127.0.0.1:{self.http}{path}"
            answer = await http.request("GET", url, headers=[("host", host)])
        finally:
            await http.close()
        return answer.status, answer.body.decode()

    async def until(self, look: Callable[[], Awaitable[T]]) -> T:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                found = await look()
                if found:
                    return found
                await asyncio.sleep(0.01)

    async def until_status(self, wanted: int, host: str) -> str:
        async def look() -> str:
            status, text = await self.status(host)
            return text if status == wanted else ""

        return await self.until(look)

    async def reasons(self, name: str = "web") -> set[str]:
        found = (await self.client.list(EVENTS, "default")).items
        return {event["reason"] for event in found if event["involvedObject"]["name"] == name}


@asynccontextmanager
async def world(tmp_path: Path) -> AsyncIterator[IngressWorld]:
    """The backend of every endpoint is one server here: it says who was asked for."""

    async def backend(request: Request) -> Response:
        return Response(200, (), f"{request.headers['host']}{request.path}".encode())

    far, authority = Server(backend), Authority(tmp_path)
    port = await far.start("127.0.0.1", 0)

    async def place_of(_origin: Origin) -> Origin:
        return Origin("http", "127.0.0.1", port)

    def own() -> ssl.SSLContext:
        pair = authority.issue("own")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert_path, pair.key_path)
        return context

    near, secure = bound_socket("127.0.0.1", 0), bound_socket("127.0.0.1", 0)
    settings = IngressSettings(near, secure, [{"hostname": "localhost"}], own, place_of)
    async with ControlPlane() as plane:
        client = plane.as_component("system:sampan:ingress")
        ingress = Ingress(settings, client, plane.clock, random.Random(1))
        await ingress.start()
        try:
            ports = near.getsockname()[1], secure.getsockname()[1]
            yield IngressWorld(plane, ports[0], ports[1], authority)
        finally:
            await ingress.stop()
            await far.stop(0.5)


def told(story: Callable[[IngressWorld], Awaitable[None]]) -> Callable[[Path], None]:
    """A test of `async def story(world)`."""

    def run(tmp_path: Path) -> None:
        async def inside() -> None:
            async with world(tmp_path) as here:
                await story(here)

        asyncio.run(inside())

    run.__name__, run.__doc__ = story.__name__, story.__doc__
    return run
