"""Scripted usage and metrics: what annotations say, autoscalers follow, in virtual time."""

import pytest

from sampan.api.errors import InternalError, NotFound, UnknownPath
from sampan.api.resources import (
    API_SERVICES,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    PODS,
    SERVICES,
    Resource,
)
from tests.flow.test_autoscaling import add_simulated_node, replicas, run_pods, set_up
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server
from tests.support.worlds.control_plane import published_schema, story

with_autoscaler = story(["horizontal-pod-autoscaler-controller", "deployment", "replicaset"])
NOTE = "simulated.sampan.dev/"
VERSIONS = (("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1"))
POD_VALUES = Resource("custom.metrics.k8s.io", "v1beta2", "MetricValueList", "pods")


async def register(plane):
    for group, version in VERSIONS:
        spec = {"group": group, "version": version, "groupPriorityMinimum": 100,
                "versionPriority": 100}  # fmt: skip
        head = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
        service = {**head, "metadata": {"name": f"{version}.{group}"}, "spec": spec}
        await plane.client.create(API_SERVICES, service)


async def autoscaled(plane, metric, notes=None, size=1):
    """A Deployment whose pods run, and carry the notes."""
    await add_simulated_node(plane)
    await set_up(plane, size, metrics=[metric], maxReplicas=10)
    await run_pods(plane)
    for pod in (await plane.client.list(PODS, "default")).items:
        await annotate(plane, PODS, pod["metadata"]["name"], notes or {})


async def annotate(plane, resource, name, notes, namespace="default"):
    patch = {"metadata": {"annotations": {NOTE + key: text for key, text in notes.items()}}}
    await plane.client.patch(resource, namespace, name, patch)


async def scaled(plane, notes=None, seconds=60):
    """Where it stands after a while, with every new pod running and scripted alike."""
    for _ in range(4):
        await plane.settled(seconds=seconds / 4)
        await run_pods(plane)
        for pod in (await plane.client.list(PODS, "default")).items:
            await annotate(plane, PODS, pod["metadata"]["name"], notes or {})
    return await replicas(plane)


def resource_metric(cpu):
    target = {"type": "AverageValue", "averageValue": cpu}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def pods_metric(value):
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": target}}


def object_metric(value):
    described = {"apiVersion": "v1", "kind": "Service", "name": "front"}
    target = {"type": "AverageValue", "averageValue": value}
    metric = {"metric": {"name": "hits"}, "describedObject": described, "target": target}
    return {"type": "Object", "object": metric}


def external_metric(value, **labels):
    metric = {"name": "waiting", "selector": {"matchLabels": labels}}
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "External", "external": {"metric": metric, "target": target}}


@with_autoscaler
async def test_a_load_that_is_shared_comes_to_rest_and_moves_with_time(plane):
    """Two cores for all: at half a core each there are four. An hour later it is one core."""
    load = {"usage-cpu": "= (age < 3600.0 ? 2.0 : 1.0) / replicas"}
    await autoscaled(plane, resource_metric("500m"), load)
    assert await scaled(plane, load, seconds=180) == 4
    assert await scaled(plane, load, seconds=900) == 4
    assert await scaled(plane, load, seconds=4800) == 2


@with_autoscaler
async def test_pods_say_by_annotation_what_custom_metrics_answer(plane):
    await register(plane)
    await autoscaled(plane, pods_metric("10"), {"metric.rps": "30"})
    assert await scaled(plane, {"metric.rps": "10"}) == 3
    found = await plane.client.get(HORIZONTAL_POD_AUTOSCALERS, "default", "web")
    [metric] = found["status"]["currentMetrics"]
    assert metric["pods"] == {"metric": {"name": "rps"}, "current": {"averageValue": "10"}}


@with_autoscaler
async def test_any_object_has_metrics(plane):
    await register(plane)
    port = {"port": 80}
    front = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"},
             "spec": {"ports": [port]}}  # fmt: skip
    await plane.client.create(SERVICES, front, "default")
    await annotate(plane, SERVICES, "front", {"metric.hits": "50"})
    await autoscaled(plane, object_metric("10"))
    assert await scaled(plane) == 5


@with_autoscaler
async def test_a_namespace_has_what_is_outside_by_labels(plane):
    await register(plane)
    said = {"external-metric.waiting": "{queue=mail} 40; {queue=sms} 900"}
    await annotate(plane, NAMESPACES, "default", said, namespace="")
    await autoscaled(plane, external_metric("10", queue="mail"))
    assert await scaled(plane) == 4


@with_autoscaler
async def test_metrics_are_there_only_while_an_apiservice_says_so(plane):
    await autoscaled(plane, pods_metric("10"), {"metric.rps": "30"})
    with pytest.raises(UnknownPath):
        await plane.client.get(POD_VALUES, "default", "*", subresource="rps")
    await register(plane)
    found = await plane.client.get(POD_VALUES, "default", "*", subresource="rps")
    [item] = found["items"]
    assert (found["kind"], found["apiVersion"]) == ("MetricValueList", POD_VALUES.api_version)
    [pod] = (await plane.client.list(PODS, "default")).items
    assert item["describedObject"] == {
        "kind": "Pod", "namespace": "default", "name": pod["metadata"]["name"], "apiVersion": "v1",
    }  # fmt: skip
    assert (item["metric"]["name"], item["value"]) == ("rps", "30")
    assert list(await plane.client.resources("custom.metrics.k8s.io", "v1beta2")) == []
    await plane.client.delete(API_SERVICES, "", "v1beta2.custom.metrics.k8s.io")
    with pytest.raises(UnknownPath):
        await plane.client.get(POD_VALUES, "default", "*", subresource="rps")


@with_autoscaler
async def test_what_is_not_scripted_or_wrongly_is_said(plane):
    await register(plane)
    await autoscaled(plane, pods_metric("10"), {"metric.rps": "many"})
    with pytest.raises(NotFound, match="could not find the metric hits for pods"):
        await plane.client.get(POD_VALUES, "default", "*", subresource="hits")
    with pytest.raises(InternalError, match="'many' is no quantity"):
        await plane.client.get(POD_VALUES, "default", "*", subresource="rps")
    assert await scaled(plane) == 1
    assert (await plane.client.get(DEPLOYMENTS, "default", "web"))["spec"]["replicas"] == 1


def test_over_http_they_are_a_group_as_any_other():
    async def asked():
        async with api_server(published_schema()) as api:
            for group, version in VERSIONS:
                spec = {"group": group, "version": version, "groupPriorityMinimum": 100,
                        "versionPriority": 100}  # fmt: skip
                service = {"metadata": {"name": f"{version}.{group}"}, "spec": spec}
                await api.made("/apis/apiregistration.k8s.io/v1/apiservices", service)
            notes = {f"{NOTE}metric.heat": "= 1.5", f"{NOTE}external-metric.waiting": "4"}
            note = {"metadata": {"annotations": notes}}
            await api.patch("/api/v1/namespaces/default", note)
            listed = (await api.get("/apis")).obj["groups"]
            assert {group for group, _ in VERSIONS} <= {one["name"] for one in listed}
            root = "/apis/custom.metrics.k8s.io/v1beta2"
            found = (await api.get(root)).obj
            assert (found["kind"], found["resources"]) == ("APIResourceList", [])
            heat = (await api.get(f"{root}/namespaces/default/metrics/heat")).obj
            assert [item["value"] for item in heat["items"]] == ["1500m"]
            outside = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/waiting"
            assert (await api.get(outside)).obj["items"][0]["value"] == "4"
            missing = await api.get(f"{root}/namespaces/default/pods/%2A/rps")
            assert (missing.status, missing.obj["reason"]) == (404, "NotFound")
            assert (await api.get(f"{root}/namespaces/default")).status == 404

    virtual_time.run(asked())
