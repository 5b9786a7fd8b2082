"""Gateways and HTTPRoutes, from the API to a backend that answers: all in this process."""

import asyncio
import base64
import ssl

import pytest

from sampan.api.resources import CUSTOM_RESOURCE_DEFINITIONS, SECRETS, Resource
from tests.support.parts import gateways as made
from tests.support.worlds.ingress_world import told

pytestmark = pytest.mark.slow

CLASSES = Resource(made.GROUP, "v1", "GatewayClass", "gatewayclasses", namespaced=False)
GATEWAYS = Resource(made.GROUP, "v1", "Gateway", "gateways")
ROUTES = Resource(made.GROUP, "v1", "HTTPRoute", "httproutes")
HOME = {"namespace": "default"}


async def define(world):
    for definition in made.definitions():
        await world.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)

    async def class_of_ours():
        found = (await world.client.list(CLASSES)).items
        return [
            each["metadata"]["name"]
            for each in found
            if condition(each.get("status"), "Accepted") == ("True", "Accepted")
        ]

    assert await world.until(class_of_ours) == ["sampan"]


def condition(status, kind):
    for each in (status or {}).get("conditions") or ():
        if each["type"] == kind:
            return each["status"], each["reason"]
    return None


async def add_gateway(world, *listeners):
    """One that listens where this process does."""
    gateway = made.gateway(*listeners or [made.listener(port=world.http)], **HOME)
    await world.client.create(GATEWAYS, gateway)


async def add_route(world, *rules, name="r", **more):
    route = made.http_route(*rules, name=name, parent={"name": "gw"}, **HOME, **more)
    del route["metadata"]["creationTimestamp"]
    await world.client.create(ROUTES, route)


async def parent_of(world, name="r"):
    route = await world.client.get(ROUTES, "default", name)
    found = (route.get("status") or {}).get("parents")
    return found[0] if found else None


@told
async def test_definitions_that_come_later_are_served_at_once(world):
    await world.add_service()
    await define(world)
    await add_gateway(world)
    await add_route(world, made.rule("/a"), hostnames=["web.localhost"])
    assert (
        await world.until(lambda: answers(world, 200, "/a/b", "web.localhost"))
        == "web.localhost/a/b"
    )
    assert (await world.status("web.localhost", "/b"))[0] == 404
    assert (await world.status("other.localhost", "/a"))[0] == 404

    async def counted():
        gateway = await world.client.get(GATEWAYS, "default", "gw")
        status = gateway.get("status") or {}
        return [each["attachedRoutes"] for each in status.get("listeners") or ()] == [1] and status

    status = await world.until(counted)
    assert status["addresses"] == [{"type": "Hostname", "value": "localhost"}]
    assert condition(status, "Programmed") == ("True", "Programmed")
    parent = await world.until(lambda: parent_of(world))
    assert condition(parent, "Accepted") == ("True", "Accepted")
    assert condition(parent, "ResolvedRefs") == ("True", "ResolvedRefs")
    await world.client.delete(ROUTES, "default", "r")
    await world.until(lambda: answers(world, 404, "/a/b", "web.localhost"))


async def answers(world, status, path, host):
    found, text = await world.status(host, path)
    return found == status and (text or "nothing")


@told
async def test_an_ingress_has_what_no_route_is_for(world):
    await world.add_service()
    await world.add_ingress(ingressClassName="sampan")
    await define(world)
    await add_gateway(world)
    rewrite = {
        "type": "URLRewrite",
        "urlRewrite": {"hostname": "inside", "path": {
            "type": "ReplaceFullPath", "replaceFullPath": "/full"}},
    }  # fmt: skip
    await add_route(world, made.rule("/route", filters=[rewrite]))

    async def routed():
        found = await world.status("web.localhost", "/route")
        return found == (200, "inside/full")

    await world.until(routed)
    assert await world.status("web.localhost", "/x") == (200, "web.localhost/x")


@told
async def test_a_backend_that_comes_later_resolves_the_route(world):
    await define(world)
    await add_gateway(world)
    await add_route(world)

    async def told_missing():
        parent = await parent_of(world)
        return condition(parent, "ResolvedRefs") == ("False", "BackendNotFound")

    await world.until(told_missing)
    assert (await world.status("a.localhost"))[0] == 500
    await world.add_service()
    await world.until(lambda: answers(world, 200, "/", "a.localhost"))

    async def told_found():
        return condition(await parent_of(world), "ResolvedRefs") == ("True", "ResolvedRefs")

    await world.until(told_found)


@told
async def test_a_listener_of_https_shows_the_certificate_of_its_secret(world):
    await world.add_service()
    await define(world)
    listener = made.listener(
        "https", world.https, "HTTPS", hostname="*.shop.localhost",
        tls={"certificateRefs": [{"name": "cert"}]},
    )  # fmt: skip
    await add_gateway(world, listener)
    await add_route(world)

    async def unresolved():
        gateway = await world.client.get(GATEWAYS, "default", "gw")
        found = (gateway.get("status") or {}).get("listeners") or [{}]
        return condition(found[0], "ResolvedRefs") == ("False", "InvalidCertificateRef")

    await world.until(unresolved)
    pair = world.authority.issue("x", names=["a.b.shop.localhost"])
    texts = {"tls.crt": pair.cert_path.read_bytes(), "tls.key": pair.key_path.read_bytes()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cert", "namespace": "default"},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(text).decode() for name, text in texts.items()},
    }
    await world.client.create(SECRETS, secret)
    trusting = ssl.create_default_context(cafile=world.authority.ca_path)

    async def served():
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", world.https, ssl=trusting, server_hostname="a.b.shop.localhost"
            )
        except ssl.SSLError:
            return False  # still the controller's own certificate
        writer.write(b"GET /x HTTP/1.1\r\nhost: a.b.shop.localhost\r\nconnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer.startswith(b"HTTP/1.1 200") and answer

    assert (await world.until(served)).endswith(b"a.b.shop.localhost/x")


@told
async def test_what_others_say_of_a_route_stays(world):
    await world.add_service()
    await define(world)
    await add_gateway(world)
    theirs = {"parentRef": {"name": "x"}, "controllerName": "example.com/other", "conditions": []}
    await add_route(world)
    await world.until(lambda: parent_of(world))
    route = await world.client.get(ROUTES, "default", "r")
    patch = {"status": {"parents": [theirs, *route["status"]["parents"]]}}
    await world.client.patch(
        ROUTES, "default", "r", patch, patch_type="merge", subresource="status"
    )
    await world.client.delete(GATEWAYS, "default", "gw")

    async def only_theirs():
        found = await world.client.get(ROUTES, "default", "r")
        return found["status"]["parents"] == [theirs]

    await world.until(only_theirs)
