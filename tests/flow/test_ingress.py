"""Ingresses, from the API to a backend that answers: the whole controller in this process."""

import asyncio
import base64
import random
import ssl
from contextlib import asynccontextmanager

import pytest

from sampan.api.resources import (
    ENDPOINT_SLICES,
    EVENTS,
    INGRESS_CLASSES,
    INGRESSES,
    NODES,
    SECRETS,
    SERVICES,
)
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Response
from sampan.core.http.origin import Origin
from sampan.core.http.server import Server, bound_socket
from sampan.network.ingress.ingress import Ingress, IngressSettings
from tests.support.parts.certificates import Authority
from tests.support.worlds.control_plane import ControlPlane

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0


class World:
    def __init__(self, plane, http, https, authority):
        self.plane, self.http, self.https, self.authority = plane, http, https, authority
        self.client = plane.client

    async def add_service(self, name="web", address="10.244.0.5", node="n1", **spec):
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

    async def add_ingress(self, name="web", service="web", host="web.localhost", **spec):
        backend = {"service": {"name": service, "port": {"name": "http"}}}
        paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
        ingress = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"rules": [{"host": host, "http": {"paths": paths}}], **spec},
        }
        await self.client.create(INGRESSES, ingress)

    async def status(self, host, path="/"):
        """Of an answer, and its text."""
        http = HttpClient()
        try:
            url = f"http://127.0.0.1:{self.http}{path}"
            answer = await http.request("GET", url, headers=[("host", host)])
        finally:
            await http.close()
        return answer.status, answer.body.decode()

    async def until(self, look):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                found = await look()
                if found:
                    return found
                await asyncio.sleep(0.01)

    async def until_status(self, wanted, host):
        async def look():
            status, text = await self.status(host)
            return text if status == wanted else ""

        return await self.until(look)

    async def reasons(self, name="web"):
        found = (await self.client.list(EVENTS, "default")).items
        return {event["reason"] for event in found if event["involvedObject"]["name"] == name}


@asynccontextmanager
async def world(tmp_path):
    """The backend of every endpoint is one server here: it says who was asked for."""

    async def backend(request):
        return Response(200, (), f"{request.headers['host']}{request.path}".encode())

    far, authority = Server(backend), Authority(tmp_path)
    port = await far.start("127.0.0.1", 0)

    async def place_of(_origin):
        return Origin("http", "127.0.0.1", port)

    def own():
        pair = authority.issue("own")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert_path, pair.key_path)
        return context

    listening = [bound_socket("127.0.0.1", 0) for _ in range(2)]
    settings = IngressSettings(*listening, [{"hostname": "localhost"}], own, place_of)
    async with ControlPlane() as plane:
        client = plane.as_component("system:sampan:ingress")
        ingress = Ingress(settings, client, plane.clock, random.Random(1))
        await ingress.start()
        try:
            ports = [each.getsockname()[1] for each in listening]
            yield World(plane, *ports, authority)
        finally:
            await ingress.stop()
            await far.stop(0.5)


def told(story):
    """A test of `async def story(world)`."""

    def run(tmp_path):
        async def inside():
            async with world(tmp_path) as here:
                await story(here)

        asyncio.run(inside())

    run.__name__, run.__doc__ = story.__name__, story.__doc__
    return run


@told
async def test_an_ingress_without_a_class_is_served_and_its_status_says_where(world):
    async def is_default():
        found = (await world.client.list(INGRESS_CLASSES)).items
        return [each["metadata"]["name"] for each in found]

    assert await world.until(is_default) == ["sampan"]
    await world.add_service()
    await world.add_ingress()
    assert await world.until_status(200, "web.localhost:8080") == "web.localhost:8080/"

    async def addresses():
        found = await world.client.get(INGRESSES, "default", "web")
        return found["status"]["loadBalancer"].get("ingress")

    ports = [{"port": each, "protocol": "TCP"} for each in (world.http, world.https)]
    assert await world.until(addresses) == [{"hostname": "localhost", "ports": ports}]
    found = await world.client.get(INGRESSES, "default", "web")
    assert found["spec"]["ingressClassName"] == "sampan"
    assert (await world.status("other.localhost"))[0] == 404
    await world.client.delete(INGRESSES, "default", "web")
    await world.until_status(404, "web.localhost")


@told
async def test_what_leads_nowhere_is_unavailable_and_told_by_events(world):
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "fake"},
        "status": {"nodeInfo": {"osImage": "simulated"}},
    }
    await world.client.create(NODES, node)
    await world.add_ingress(ingressClassName="sampan")
    await world.until_status(503, "web.localhost")

    async def missing():
        return "ServiceNotFound" in await world.reasons()

    await world.until(missing)
    await world.add_service(node="fake")

    async def simulated():
        status, text = await world.status("web.localhost")
        return status == 503 and "simulated" in text

    await world.until(simulated)
    await world.add_service("away", type="ExternalName", externalName="example.com")
    await world.add_ingress("away", "away", "away.localhost", ingressClassName="sampan")

    async def refused():
        return "ExternalNameNotSupported" in await world.reasons("away")

    await world.until(refused)
    assert (await world.status("away.localhost"))[0] == 503


@told
async def test_ingresses_of_other_classes_are_left_alone(world):
    other = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"},
    }
    await world.client.create(INGRESS_CLASSES, other)
    await world.add_service()
    await world.add_ingress("theirs", host="theirs.localhost", ingressClassName="nginx")
    await world.add_ingress("ours", host="ours.localhost", ingressClassName="sampan")
    await world.until_status(200, "ours.localhost")
    assert (await world.status("theirs.localhost"))[0] == 404
    theirs = await world.client.get(INGRESSES, "default", "theirs")
    assert not theirs["status"]["loadBalancer"].get("ingress")


@told
async def test_the_certificate_is_that_of_the_secret(world):
    pair = world.authority.issue("shop.localhost", names=["shop.localhost"])
    data = {
        name: base64.b64encode(path.read_bytes()).decode()
        for name, path in (("tls.crt", pair.cert_path), ("tls.key", pair.key_path))
    }
    tls = [{"hosts": ["shop.localhost"], "secretName": "cert"}]
    await world.add_service()
    await world.add_ingress(host="shop.localhost", ingressClassName="sampan", tls=tls)

    async def missing():
        return "SecretNotFound" in await world.reasons()

    await world.until(missing)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cert", "namespace": "default"},
        "type": "kubernetes.io/tls",
        "data": data,
    }
    await world.client.create(SECRETS, secret)
    trusting = ssl.create_default_context(cafile=world.authority.ca_path)
    trusting.check_hostname = False

    async def shown():
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", world.https, ssl=trusting, server_hostname="shop.localhost"
        )
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.write(b"GET /x HTTP/1.1\r\nhost: shop.localhost\r\nconnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return found == ssl.PEM_cert_to_DER_cert(pair.cert_path.read_text()) and answer

    assert (await world.until(shown)).endswith(b"shop.localhost/x")
