"""An autoscaler on the real API: the target's scale, conditions, events."""

import pytest

from sampan.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PODS,
    Resource,
)
from tests.support.worlds.control_plane import story

with_autoscaler = story(["horizontal-pod-autoscaler-controller", "deployment", "replicaset"])


async def set_up(plane, replicas, **spec):
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec},
    }
    await plane.client.create(DEPLOYMENTS, deployment)
    await plane.client.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler)
    await plane.settled(seconds=16)


async def conditions(plane):
    found = await plane.client.get(HORIZONTAL_POD_AUTOSCALERS, "default", "web")
    return {one["type"]: one["reason"] for one in found["status"]["conditions"]}


async def replicas(plane):
    return (await plane.client.get(DEPLOYMENTS, "default", "web"))["spec"]["replicas"]


@with_autoscaler
async def test_bounds_are_enforced_on_the_target(plane):
    await set_up(plane, 1, minReplicas=3)
    assert await replicas(plane) == 3
    assert (await conditions(plane))["AbleToScale"] == "SucceededRescale"
    messages = [one["message"] for one in (await plane.client.list(EVENTS)).items]
    why = "New size: 3; reason: Current number of replicas below Spec.MinReplicas"
    assert why in messages


@with_autoscaler
async def test_it_looks_again_every_fifteen_seconds(plane):
    await set_up(plane, 2)
    scaled = {"spec": {"replicas": 9}}
    await plane.client.patch(DEPLOYMENTS, "default", "web", scaled, patch_type="merge")
    await plane.settled()
    assert await replicas(plane) == 9
    await plane.settled(seconds=16)
    assert await replicas(plane) == 5


@with_autoscaler
async def test_without_pods_that_are_measured_the_size_stays(plane):
    await set_up(plane, 2)
    assert await replicas(plane) == 2
    assert (await conditions(plane))["ScalingActive"] == "FailedGetResourceMetric"
    why = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: "
        "no metrics returned from resource metrics API"
    )
    found = await plane.client.get(HORIZONTAL_POD_AUTOSCALERS, "default", "web")
    said = {one["type"]: one["message"] for one in found["status"]["conditions"]}
    assert said["ScalingActive"] == f"the HPA was unable to compute the replica count: {why}"
    first = "invalid metrics (1 invalid out of 1), first error is: "
    assert await told(plane) >= {
        ("FailedGetResourceMetric", why),
        (
            "FailedComputeMetricsReplicas",
            f"{first}failed to get cpu resource metric value: {why}",
        ),
    }


async def told(plane):
    listed = (await plane.client.list(EVENTS, "default")).items
    return {(one["reason"], one["message"]) for one in listed}


@pytest.mark.kubernetes("1.37")
@with_autoscaler
async def test_two_autoscalers_of_the_same_pods_are_told_and_do_nothing(plane):
    await set_up(plane, 2)
    first = await plane.client.get(HORIZONTAL_POD_AUTOSCALERS, "default", "web")
    second = {
        **{field: first[field] for field in ("apiVersion", "kind", "spec")},
        "metadata": {"name": "twin", "namespace": "default"},
    }
    await plane.client.create(HORIZONTAL_POD_AUTOSCALERS, second)
    await plane.settled(seconds=32)
    assert (await conditions(plane))["ScalingActive"] == "AmbiguousSelector"
    keys = "[default/twin default/web]"
    message = f"pods by selector app=web are controlled by more than one HPA (e.g. {keys})"
    both = {("AmbiguousSelector", message), ("FailedComputeMetricsReplicas", message)}
    assert await told(plane) >= both
    await plane.client.delete(HORIZONTAL_POD_AUTOSCALERS, "default", "twin")
    await plane.settled(seconds=20)
    assert (await conditions(plane))["ScalingActive"] == "FailedGetResourceMetric"


FLEETS = Resource("example.com", "v1", "Fleet", "fleets")
FLEET_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "fleets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "fleets", "kind": "Fleet"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
                "subresources": {
                    "scale": {
                        "specReplicasPath": ".spec.ships",
                        "statusReplicasPath": ".status.ships",
                        "labelSelectorPath": ".status.selector",
                    }
                },
            }
        ],
    },
}


@with_autoscaler
async def test_a_custom_kind_is_scaled_by_its_scale_subresource(plane):
    """Whatever its fields are called."""
    await plane.client.create(CUSTOM_RESOURCE_DEFINITIONS, FLEET_DEFINITION)
    await plane.settled()
    fleet = {
        "apiVersion": "example.com/v1",
        "kind": "Fleet",
        "metadata": {"name": "north", "namespace": "default"},
        "spec": {"ships": 1},
        "status": {"ships": 1, "selector": "app=fleet"},
    }
    await plane.client.create(FLEETS, fleet)
    target = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "north"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 5},
    }
    await plane.client.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler)
    await plane.settled(seconds=16)
    assert (await plane.client.get(FLEETS, "default", "north"))["spec"] == {"ships": 3}
    assert (await conditions(plane))["AbleToScale"] == "SucceededRescale"


@with_autoscaler
async def test_a_target_that_is_not_there_is_told(plane):
    await set_up(plane, 2)
    missing = {"spec": {"scaleTargetRef": {"name": "nobody"}}}
    client = plane.client
    await client.patch(HORIZONTAL_POD_AUTOSCALERS, "default", "web", missing, patch_type="merge")
    await plane.settled(seconds=16)
    assert (await conditions(plane))["AbleToScale"] == "FailedGetScale"


async def add_simulated_node(plane):
    info = dict.fromkeys(
        (
            "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeletVersion",
            "kubeProxyVersion", "operatingSystem", "architecture",
        ),
        "x",
    )  # fmt: skip
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"nodeInfo": {**info, "containerRuntimeVersion": "simulated://1.0"}},
    }
    await plane.client.create(NODES, node)


async def run_pods(plane):
    """What scheduler and kubelet do."""
    stamp = plane.time_text()
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp}
    patch = {"status": {"phase": "Running", "startTime": stamp, "conditions": [ready]}}
    for pod in (await plane.client.list(PODS, "default")).items:
        name = pod["metadata"]["name"]
        if pod["spec"].get("nodeName"):
            continue
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": {"kind": "Node", "name": "n"},
        }
        await plane.client.create(PODS, binding, "default", subresource="binding", name=name)
        await plane.client.patch(PODS, "default", name, patch, subresource="status")
    await plane.settled()


@with_autoscaler
async def test_a_target_grows_with_its_load_and_shrinks_five_minutes_after(plane):
    await add_simulated_node(plane)
    await set_up(plane, 1)
    requests = {"requests": {"cpu": "100m"}}
    busy = {
        "metadata": {"annotations": {"simulated.sampan.dev/usage-cpu": "240m"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": requests}]},
    }
    await plane.client.patch(DEPLOYMENTS, "default", "web", {"spec": {"template": busy}})
    await plane.settled()
    await run_pods(plane)  # of both templates: now the old one may go
    for pod in (await plane.client.list(PODS, "default")).items:
        if "annotations" not in pod["metadata"]:  # of the first template: no kubelet ends it
            await plane.client.delete(PODS, "default", pod["metadata"]["name"], grace_seconds=0)
    await plane.settled(seconds=400)
    assert await replicas(plane) == 3  # 240 % of the request, 80 % is the goal
    found = await plane.client.get(HORIZONTAL_POD_AUTOSCALERS, "default", "web")
    [metric] = found["status"]["currentMetrics"]
    assert metric["resource"]["current"]["averageUtilization"] == 240
    await run_pods(plane)
    idle = {"metadata": {"annotations": {"simulated.sampan.dev/usage-cpu": "1m"}}}
    for pod in (await plane.client.list(PODS, "default")).items:
        await plane.client.patch(PODS, "default", pod["metadata"]["name"], idle)
    await plane.settled(seconds=200)
    assert await replicas(plane) == 3
    await plane.settled(seconds=400)
    assert await replicas(plane) == 1
