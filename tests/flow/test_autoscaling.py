"""An autoscaler on the real API: the target's scale, conditions, events."""

from sampan.api.resources import DEPLOYMENTS, EVENTS, HORIZONTAL_POD_AUTOSCALERS
from sampan.testing.control_plane import story

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
    await plane.settled()


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


@with_autoscaler
async def test_a_target_that_is_not_there_is_told(plane):
    await set_up(plane, 2)
    missing = {"spec": {"scaleTargetRef": {"name": "nobody"}}}
    client = plane.client
    await client.patch(HORIZONTAL_POD_AUTOSCALERS, "default", "web", missing, patch_type="merge")
    await plane.settled()
    assert (await conditions(plane))["AbleToScale"] == "FailedGetScale"
