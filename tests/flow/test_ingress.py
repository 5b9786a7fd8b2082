"""Ingresses, from the API to a backend that answers: the whole controller in this process."""

import asyncio
import base64
import ssl

import pytest

from sampan.api.resources import INGRESS_CLASSES, INGRESSES, NODES, SECRETS
from tests.support.worlds.ingress_world import told

pytestmark = pytest.mark.slow


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
