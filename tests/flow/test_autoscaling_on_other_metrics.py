"""Metrics that aggregated servers have: what is asked of them, and what is read."""

import asyncio
import base64
import random
from contextlib import asynccontextmanager

import orjson
import pytest

from sampan.api.schema.published import Schema
from sampan.apiserver.authn.settings import ProxyClientSettings
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.inprocess import InProcessClient
from sampan.controllers.autoscaling.metric_readings import readings_of
from sampan.controllers.controller import View
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response
from tests.support.generators.api_requests import api_server
from tests.support.parts.aggregated_server import tea_listener
from tests.support.parts.certificates import Authority

pytestmark = pytest.mark.slow
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
SELECTOR = {"matchLabels": {"queue": "mail"}}


class Adapter:
    """As prometheus-adapter or KEDA: some values, and what it was asked."""

    def __init__(self):
        self.asked = []

    async def handle(self, request):
        path = request.path.rstrip("/")
        found = self._answer(path)
        if "/namespaces/" in path:
            self.asked.append((path, request.query))
        if found is None:
            body = {"kind": "Status", "code": 404, "message": "the adapter has no such metric"}
            return Response(404, (("content-type", "application/json"),), orjson.dumps(body))
        return Response(200, (("content-type", "application/json"),), orjson.dumps(found))

    def _answer(self, path):
        stamp = "2026-01-01T00:00:00Z"
        if path in (CUSTOM, EXTERNAL):
            version = path.removeprefix("/apis/")
            listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version}
            return {**listed, "resources": []}
        if path == f"{CUSTOM}/namespaces/default/pods/*/rps":
            return {
                "items": [
                    {"describedObject": {"name": "p0"}, "timestamp": stamp, "value": "1500m"},
                    {
                        "describedObject": {"name": "p1"},
                        "timestamp": stamp,
                        "value": "2",
                        "windowSeconds": 30,
                    },
                ]
            }
        if path == f"{CUSTOM}/namespaces/default/ingresses.networking.k8s.io/main/hits":
            return {"items": [{"describedObject": {"name": "main"}, "value": "7"}]}
        if path == f"{CUSTOM}/namespaces/default/metrics/spent":
            return {"items": [{"describedObject": {"name": "default"}, "value": "9"}]}
        if path == f"{EXTERNAL}/namespaces/default/waiting":
            return {"metadata": {}, "items": [{"value": "3"}, {"value": "4"}]}
        return None


@asynccontextmanager
async def served(tmp_path, adapter):
    authority = Authority(tmp_path)
    (tmp_path / "proxy").mkdir()
    proxies = Authority(tmp_path / "proxy", "front-proxy-ca")
    own = proxies.issue("front-proxy-client")
    client = ProxyClientSettings(
        str(own.cert_path), str(own.key_path), proxies.ca_path.read_text(), "front-proxy-client"
    )
    pair = authority.issue("metrics", names=["metrics.default.svc"])
    listener = tea_listener(adapter, pair, proxies.ca_path)
    port = await listener.start("127.0.0.1", 0)
    settings = ApiServerSettings(proxy_client=client, proxied_address=lambda _address: True)
    try:
        async with api_server(Schema.load(), settings=settings, clock=SystemClock()) as api:
            await _register(api, authority, port)
            yield api
    finally:
        await listener.stop(0.1)


async def _register(api, authority, port):
    service = {
        "metadata": {"name": "metrics"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    await api.made("/api/v1/namespaces/default/services", service)
    bundle = base64.b64encode(authority.ca_path.read_bytes()).decode()
    for group, version in (("custom", "v1beta2"), ("external", "v1beta1")):
        spec = {
            "group": f"{group}.metrics.k8s.io", "version": version, "caBundle": bundle,
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": "default", "name": "metrics", "port": port},
        }  # fmt: skip
        name = f"{version}.{group}.metrics.k8s.io"
        await api.made(API_SERVICES, {"metadata": {"name": name}, "spec": spec})
        async with asyncio.timeout(30):
            while not await _is_available(api, name):
                await asyncio.sleep(0.02)


async def _is_available(api, name):
    found = (await api.get(f"{API_SERVICES}/{name}")).obj
    conditions = found.get("status", {}).get("conditions") or ()
    return any(one["status"] == "True" for one in conditions)


def autoscaler(*metrics):
    return {"metadata": {"namespace": "default"}, "spec": {"metrics": list(metrics)}}


async def read(api, *metrics):
    client = InProcessClient(api.server.as_user(User("hpa", (MASTERS,))))
    view = View(lambda _resource: None, client, 0.0, random.Random(1))
    return await readings_of(view, autoscaler(*metrics), "app=web")


def _object(kind, api_version, name, metric):
    described = {"apiVersion": api_version, "kind": kind, "name": name}
    return {"type": "Object", "object": {"describedObject": described, "metric": metric}}


def test_what_adapters_are_asked_and_say(tmp_path):
    async def test():
        adapter = Adapter()
        async with served(tmp_path, adapter) as api:
            pods, hits, spent, waiting, none = await read(
                api,
                {"type": "Pods", "pods": {"metric": {"name": "rps", "selector": SELECTOR}}},
                _object("Ingress", "networking.k8s.io/v1", "main", {"name": "hits"}),
                _object("Namespace", "v1", "any", {"name": "spent"}),
                {"type": "External",
                 "external": {"metric": {"name": "waiting", "selector": SELECTOR}}},
                {"type": "External", "external": {"metric": {"name": "unknown"}}},
            )  # fmt: skip
        assert {name: one.milli for name, one in pods.samples.items()} == {"p0": 1500, "p1": 2000}
        assert [one.window_seconds for one in pods.samples.values()] == [60.0, 30.0]
        assert (hits.milli, spent.milli, waiting.values) == (7000, 9000, [3000, 4000])
        assert none.failure == (
            "unable to fetch metrics from external metrics API: the adapter has no such metric"
        )
        assert adapter.asked[0] == (
            f"{CUSTOM}/namespaces/default/pods/*/rps",
            "labelSelector=app%3Dweb&metricLabelSelector=queue%3Dmail",
        )
        assert adapter.asked[3] == (
            f"{EXTERNAL}/namespaces/default/waiting",
            "labelSelector=queue%3Dmail",
        )

    asyncio.run(test())


def test_without_an_adapter_it_says_so():
    async def test():
        async with api_server(Schema.load()) as api:
            pods, outside = await read(
                api,
                {"type": "Pods", "pods": {"metric": {"name": "rps"}}},
                {"type": "External", "external": {"metric": {"name": "waiting"}}},
            )
        assert pods.failure == (
            "unable to fetch metrics from custom metrics API: "
            "no custom metrics API (custom.metrics.k8s.io) registered"
        )
        assert outside.failure.startswith(
            "unable to fetch metrics from external metrics API: the server could not find"
        )

    asyncio.run(test())
