"""Servers beside a cluster that hang or say what is not true, and clients that write too much.

Job: have webhooks and aggregated servers that misbehave for a while; write more than parts that
    stand still may be behind by.
Invariant: what was registered is gone when the time is over.
"""

import asyncio
import ssl
from contextlib import asynccontextmanager

from sampan.api.errors import AlreadyExists, ApiError, NotFound
from sampan.api.resources import (
    API_SERVICES,
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from sampan.cmd.cluster.machine import own_addresses

NAMESPACE = "default"
LIE = b'{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"","kind":7}]}'


async def hang_webhook(world, fault):
    """For the keys that are fought for: it takes connections and says nothing."""
    async with serving(Silent, "127.0.0.1") as port:
        hooks = _hooks(world, fault, port)
        await _for_a_while(world, fault, (VALIDATING_WEBHOOK_CONFIGURATIONS, hooks, ""))
    return True


def _hooks(world, fault, port):
    name = f"hangs-{fault.target.lower()}.example.com"
    key, _, value = world.selector.partition("=")
    hook = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": fault.target,
        "timeoutSeconds": 1,
        "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
        "objectSelector": {"matchLabels": {key: value}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
                   "resources": ["configmaps"]}],
    }  # fmt: skip
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }


async def aggregate(world, fault):
    """A group of an aggregated server that says nothing, or what cannot be: whoever follows all
    kinds (garbage, namespaces, quotas) goes on with the others."""
    answers = Liar if fault.target == "false" else Silent
    [address, *_] = own_addresses(())  # the server's own would be refused: it is a loopback one
    async with serving(answers, address, _own_tls(world)) as port:
        await _for_a_while(world, fault, *_aggregated(fault, address, port))
    return True


def _aggregated(fault, address, port):
    group, name = f"{fault.target}.example.com", f"{fault.target}-server"
    head = {"name": name, "namespace": NAMESPACE}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": head,
               "spec": {"ports": [{"port": 443, "targetPort": port}]}}  # fmt: skip
    addresses = {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {**head, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4", "endpoints": [{"addresses": [address]}], "ports": [{"port": port}],
    }  # fmt: skip
    behind = {**head, "port": 443}
    registered = {
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 10,
            "insecureSkipTLSVerify": True, "service": behind,
        },
    }  # fmt: skip
    return (
        (SERVICES, service, NAMESPACE), (ENDPOINT_SLICES, addresses, NAMESPACE),
        (API_SERVICES, registered, ""),
    )  # fmt: skip


async def flood(world, times, text):
    """An object that nobody fights for is written again and again."""
    name, client = "bulk", world.client
    obj = {"apiVersion": "v1", "kind": "ConfigMap",
           "metadata": {"name": name, "namespace": NAMESPACE}, "data": {}}  # fmt: skip
    await _insist(world, lambda: client.create(CONFIG_MAPS, obj, NAMESPACE))
    for number in range(times):
        change = {"data": {"text": text, "number": str(number)}}
        await _insist(
            world,
            lambda change=change: client.patch(
                CONFIG_MAPS, NAMESPACE, name, change, patch_type="merge"
            ),
        )
    await _insist(world, lambda: client.delete(CONFIG_MAPS, NAMESPACE, name))


async def _for_a_while(world, fault, *made):
    for resource, obj, namespace in made:
        await _insist(world, lambda r=resource, o=obj, n=namespace: world.client.create(r, o, n))
    await world.clock.sleep(fault.seconds)
    for resource, obj, namespace in made:
        name = obj["metadata"]["name"]
        await _insist(
            world, lambda r=resource, n=namespace, name=name: world.client.delete(r, n, name)
        )


async def _insist(world, call):
    while True:
        try:
            return await call()
        except (AlreadyExists, NotFound):
            return None
        except ApiError:
            await world.clock.sleep(0.1)


@asynccontextmanager
async def serving(protocol, address, tls=None):
    """Its port; at the end nobody is left connected."""
    connected = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: protocol(connected), address, 0, ssl=tls
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for transport in list(connected):
            transport.abort()
        while connected:
            await asyncio.sleep(0)


class Silent(asyncio.Protocol):
    def __init__(self, connected):
        self._connected = connected

    def connection_made(self, transport):
        self._transport = transport
        self._connected.add(transport)

    def connection_lost(self, error):
        self._connected.discard(self._transport)


class Liar(Silent):
    """Whatever it is asked."""

    def data_received(self, data):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(LIE)}"
        for _ in range(data.count(b"\r\n\r\n")):
            self._transport.write(f"{head}\r\n\r\n".encode() + LIE)


def _own_tls(world):
    """Any certificate does: it is not looked at."""
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = next(path.parent for path in world.process.data_dir.rglob("apiserver.crt"))
    found.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
    return found
