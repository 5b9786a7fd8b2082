"""Devices that bear a taint: whoever does not tolerate it goes, and rules say what they do.

Words of conditions and events are those of upstream's devicetainteviction in v1.37.
"""

import asyncio

import pytest

from sampan.api import features
from sampan.api.errors import Invalid
from sampan.api.features import Release
from sampan.api.resources import (
    DEVICE_TAINT_RULES,
    EVENTS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from tests.support.worlds.control_plane import story

pytestmark = pytest.mark.slow
with_eviction = story(["device-taint-eviction-controller"])
GPU = {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}


def on(minor):
    def decorated(test):
        def run():
            with features.used(Release(minor)):
                test()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorated


async def pod_with_device(plane, name, *tolerations):
    """One that runs, and has the device."""
    client = plane.client
    spec = {
        "nodeName": "node-1",
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
    }
    meta = {"name": name, "namespace": "default"}
    pod = await client.create(PODS, {"metadata": meta, "spec": spec})
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    claim = {"metadata": meta, "spec": {"devices": {"requests": [request]}}}
    made = await client.create(RESOURCE_CLAIMS, claim)
    result = {"request": "gpu", **GPU, "tolerations": list(tolerations)}
    user = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
    await client.update(RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")
    await plane.settled()


def rule(effect, **selector):
    taint = {"key": "broken", "value": "yes", "effect": effect}
    return {"metadata": {"name": "r"}, "spec": {"deviceSelector": selector, "taint": taint}}


async def is_going(plane, name):
    """Without a node nobody removes it."""
    pod = await plane.client.get(PODS, "default", name)
    return "deletionTimestamp" in pod["metadata"]


async def said(plane):
    found = await plane.client.get(DEVICE_TAINT_RULES, "", "r")
    [condition] = found["status"]["conditions"]
    return condition["status"], condition["reason"], condition["message"]


@on("1.37")
@with_eviction
async def test_a_rule_makes_pods_go_and_says_how_many(plane):
    """[V1] [S4]"""
    await pod_with_device(plane, "a")
    await plane.client.create(DEVICE_TAINT_RULES, rule("NoExecute", driver=GPU["driver"]))
    await plane.settled(seconds=1)
    assert await is_going(plane, "a")
    pod = await plane.client.get(PODS, "default", "a")
    target = next(c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert target["reason"] == "DeletionByDeviceTaintManager"
    events = (await plane.client.list(EVENTS, "default")).items
    assert [(e["reason"], e["message"]) for e in events] == [
        ("DeviceTaintManagerEviction", "Marking for deletion")
    ]
    await plane.client.delete(PODS, "default", "a", grace_seconds=0)
    await plane.settled(seconds=30)
    assert await said(plane) == (
        "False", "Completed", "1 pod evicted since starting the controller.",
    )  # fmt: skip


@on("1.37")
@with_eviction
async def test_a_rule_without_effect_says_what_would_happen(plane):
    await pod_with_device(plane, "a")
    await plane.client.create(DEVICE_TAINT_RULES, rule("None"))
    await plane.settled(seconds=1)
    assert not await is_going(plane, "a")
    status, reason, message = await said(plane)
    assert (status, reason) == ("False", "NoEffect")
    assert message.startswith(
        "0 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1"
        " namespace if the effect was NoExecute."
    )


@on("1.37")
@with_eviction
async def test_who_tolerates_a_taint_for_a_while_goes_afterwards_or_not_at_all(plane):
    forever = {"operator": "Exists", "effect": "NoExecute"}
    await pod_with_device(plane, "for-ever", forever)
    await pod_with_device(plane, "a-while", {**forever, "tolerationSeconds": 60})
    await plane.client.create(DEVICE_TAINT_RULES, rule("NoExecute", device="gpu-0"))
    await plane.settled(seconds=30)
    assert not await is_going(plane, "a-while")
    assert (await said(plane))[:2] == ("True", "PodsPendingEviction")
    await plane.settled(seconds=40)
    assert await is_going(plane, "a-while")
    assert not await is_going(plane, "for-ever")


@on("1.37")
@with_eviction
async def test_a_rule_that_goes_in_time_calls_the_eviction_off(plane):
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    await pod_with_device(plane, "a", toleration)
    await plane.client.create(DEVICE_TAINT_RULES, rule("NoExecute"))
    await plane.settled(seconds=5)
    await plane.client.delete(DEVICE_TAINT_RULES, "", "r")
    await plane.settled(seconds=120)
    assert not await is_going(plane, "a")
    events = (await plane.client.list(EVENTS, "default")).items
    assert [event["message"] for event in events] == ["Cancelling deletion"]


@on("1.36")
@with_eviction
async def test_a_drivers_own_taint_makes_pods_go(plane):
    """[V2]"""
    await pod_with_device(plane, "a")
    taint = {"key": "broken", "effect": "NoExecute"}
    spec = {
        "driver": GPU["driver"], "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "taints": [taint]}, {"name": "gpu-1"}],
    }  # fmt: skip
    made = await plane.client.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec})
    assert made["spec"]["devices"][0]["taints"][0]["timeAdded"] == plane.time_text()
    await plane.settled(seconds=1)
    assert await is_going(plane, "a")


@on("1.37")
@with_eviction
async def test_rules_are_checked_and_dated(plane):
    client = plane.client
    made = await client.create(DEVICE_TAINT_RULES, rule("NoSchedule", pool="node-1"))
    first = made["spec"]["taint"]["timeAdded"]
    assert (first, made["metadata"]["generation"]) == (plane.time_text(), 1)
    await asyncio.sleep(5)
    patch = {"spec": {"taint": {"effect": "NoExecute"}}}
    now = await client.patch(DEVICE_TAINT_RULES, "", "r", patch, patch_type="merge")
    assert now["spec"]["taint"]["timeAdded"] == plane.time_text() != first
    for wrong, why in (
        (rule("PreferNoSchedule"), 'Unsupported value: "PreferNoSchedule"'),
        (rule("None", driver="No_Driver"), "spec.deviceSelector.driver: Invalid value"),
        (rule("None", pool=""), "spec.deviceSelector.pool: Required value"),
    ):
        with pytest.raises(Invalid, match=why):
            await client.create(DEVICE_TAINT_RULES, wrong)
