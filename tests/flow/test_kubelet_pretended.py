"""A simulated node that pretends device plugins, CSI drivers and claims; in virtual time [H7]."""

import asyncio

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    RESOURCE_CLAIMS,
    VOLUME_ATTACHMENTS,
)
from sampan.api.rules.storage import attachment_name
from sampan.kubelet.simulated.pretence import Pretence, PretendedDriver, PretendedPlugin
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SCRIPT, SimulatedNode

GPU, DISK, NODE = "example.com/gpu", "disk.example.com", "node-1"
UNIQUE = f"kubernetes.io/csi/{DISK}^handle"
PLUGINS = Pretence((PretendedPlugin(GPU, 2),))
DRIVERS = Pretence(
    drivers=(PretendedDriver(DISK, 3, {"zone": "a"}),), known_drivers=frozenset({DISK})
)


def asking(amount):
    limits = {"limits": {GPU: str(amount)}, "requests": {GPU: str(amount)}}
    return {"containers": [{"name": "main", "image": "app:1", "resources": limits}]}


def told(story, pretence, **settings):
    async def run():
        async with SimulatedNode(NODE, pretence=pretence, **settings) as node:
            await story(node)

    virtual_time.run(run())


async def annotate(node, row, name, **notes):
    changed = {"metadata": {"annotations": {SCRIPT + key: text for key, text in notes.items()}}}
    await node.api.patch(row, "", name, changed, patch_type="merge")


def gpus(node):
    status = node.node()["status"]
    return status["capacity"].get(GPU), status["allocatable"].get(GPU)


# Device plugins.


def test_devices_are_offered_and_given_once():
    async def story(node):
        await node.until(lambda: gpus(node) == ("2", "2"))
        await node.make("first", **asking(2))
        await node.until_phase("Running", "first")
        await node.make("second", **asking(1))
        await node.until_phase("Failed", "second")
        assert node.status("second")["reason"] == "OutOfexample.com/gpu"
        await node.delete("first")
        await node.until(lambda: not node.has("first"))
        await node.make("third", **asking(1))
        await node.until_phase("Running", "third")

    told(story, PLUGINS)


def test_a_device_that_turns_unhealthy_is_not_offered_and_its_pod_says_so():
    async def story(node):
        await node.until(lambda: gpus(node) == ("2", "2"))
        await node.make(**asking(1))
        await node.until_phase("Running")

        def health():
            found = node.container().get("allocatedResourcesStatus") or [{}]
            return [(item["resourceID"], item["health"]) for item in found[0].get("resources", ())]

        assert health() == [("device-0", "Healthy")]
        await annotate(node, NODES, NODE, **{"unhealthy-devices": "device-0"})
        await node.until(lambda: gpus(node) == ("2", "1"))
        await node.until(lambda: health() == [("device-0", "Unhealthy")])
        await annotate(node, NODES, NODE, **{"unhealthy-devices": ""})
        await node.until(lambda: gpus(node) == ("2", "2"))
        await node.until(lambda: health() == [("device-0", "Healthy")])

    with features.used(Release(gates={"ResourceHealthStatus": True})):
        told(story, PLUGINS)


def test_a_plugin_that_is_away_takes_its_devices_along():
    async def story(node):
        await node.until(lambda: gpus(node) == ("2", "2"))
        await annotate(node, NODES, NODE, **{"drivers-away": GPU})
        await node.until(lambda: gpus(node) == ("2", "0"))
        await node.until(lambda: gpus(node) == ("0", "0"), 600.0)
        await annotate(node, NODES, NODE, **{"drivers-away": ""})
        await node.until(lambda: gpus(node) == ("2", "2"))

    told(story, PLUGINS)


def test_an_allocation_fails_as_the_pod_s_script_says():
    async def story(node):
        await node.until(lambda: gpus(node) == ("2", "2"))
        await node.make(script={"fail": "allocate_devices:1:no such device"}, **asking(1))
        await node.until_phase("Failed")
        assert node.status()["reason"] == "UnexpectedAdmissionError"
        assert "no such device" in node.status()["message"]
        await node.make("other", **asking(2))
        await node.until_phase("Running", "other")

    told(story, PLUGINS)


def test_who_holds_what_is_known_after_a_restart_and_an_orphan_keeps_it_to_its_end():
    """[H2]"""

    async def story(node):
        await node.until(lambda: gpus(node) == ("2", "2"))
        await node.make("kept", **asking(1))
        await node.make("gone", script={"stop-seconds": "never"}, **asking(1))
        await node.until_phase("Running", "kept")
        await node.until_phase("Running", "gone")
        await node.stop()
        await node.delete("gone", grace_seconds=0)
        await node.make("early", **asking(1))
        await node.start()
        await node.until_phase("Failed", "early")  # of two devices both are in use
        assert node.status("early")["reason"] == "UnexpectedAdmissionError"
        await node.until(lambda: node.kubelet.is_idle())
        while await node.observed("gone") is not None:
            await asyncio.sleep(0.1)
        await node.make("late", **asking(1))
        await node.until_phase("Running", "late")
        assert node.status("kept")["phase"] == "Running"

    told(story, PLUGINS)


# Claims.


def test_claims_are_prepared_unless_a_script_or_a_driver_says_otherwise():
    async def story(node):
        status = {"allocation": {"devices": {"results": [
            {"driver": "gpu.example.com", "pool": "p", "device": "d", "request": "r"}
        ]}}}  # fmt: skip
        claim = {"metadata": {"name": "mine"}, "spec": {}, "status": status}
        await node.api.create(RESOURCE_CLAIMS, claim, "default")
        await annotate(node, NODES, NODE, **{"drivers-away": "gpu.example.com"})
        await node.make(
            script={"fail": "prepare_claims:1:it is asleep"},
            resourceClaims=[{"name": "mine", "resourceClaimName": "mine"}],
        )

        def said(text):
            return any(reason == "FailedPrepareDynamicResources" and text in message
                       for reason, message in node.events())  # fmt: skip

        await node.until(lambda: said("it is asleep"))
        await node.until(lambda: said("DRA driver gpu.example.com is not registered"), 300.0)
        await annotate(node, NODES, NODE, **{"drivers-away": ""})
        await node.until_phase("Running", seconds=600.0)

    told(story, Pretence(prepares=True))


# CSI.


async def make_volume(node, **driver):
    spec = {"attachRequired": True, "volumeLifecycleModes": ["Persistent"], **driver}
    await node.api.create(CSI_DRIVERS, {"metadata": {"name": DISK}, "spec": spec})
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
              "csi": {"driver": DISK, "volumeHandle": "handle"}}  # fmt: skip
    await node.api.create(PERSISTENT_VOLUMES, {"metadata": {"name": "pv"}, "spec": volume})
    claim = {"metadata": {"name": "data"}, "spec": {"volumeName": "pv"},
             "status": {"phase": "Bound"}}  # fmt: skip
    await node.api.create(PERSISTENT_VOLUME_CLAIMS, claim, "default")


def using(claim="data"):
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


async def attach(node):
    """As the attach-detach controller and the driver's attacher."""
    await node.until(lambda: UNIQUE in (node.node()["status"].get("volumesInUse") or ()))
    name = attachment_name("handle", DISK, NODE)
    made = {"metadata": {"name": name}, "spec": {}, "status": {"attached": True}}
    await node.api.create(VOLUME_ATTACHMENTS, made)
    attached = {"status": {"volumesAttached": [{"name": UNIQUE, "devicePath": ""}]}}
    await node.api.patch(NODES, "", NODE, attached, patch_type="merge", subresource="status")


def drivers(node):
    found = node.api.find(CSI_NODES, "", NODE) or {}
    return (found.get("spec") or {}).get("drivers")


def test_the_node_says_what_its_drivers_are():
    async def story(node):
        await node.until(lambda: drivers(node))
        assert drivers(node) == [{
            "name": DISK, "nodeID": NODE, "topologyKeys": ["zone"], "allocatable": {"count": 3},
        }]  # fmt: skip
        await annotate(node, NODES, NODE, **{"drivers-away": DISK})
        await node.until(lambda: drivers(node) == [])
        await annotate(node, NODES, NODE, **{"drivers-away": ""})
        await node.until(lambda: drivers(node))

    told(story, DRIVERS)


def test_a_pod_waits_until_its_volume_is_attached_and_gives_it_back():
    async def story(node):
        await node.until(lambda: drivers(node))
        await make_volume(node)
        await node.make(**using())
        await attach(node)
        await node.until_phase("Running")
        await node.delete()
        await node.until(lambda: not node.has())
        await node.until(lambda: not node.node()["status"].get("volumesInUse"))

    told(story, DRIVERS)


@pytest.mark.parametrize(
    ("method", "step"),
    [("NodeStageVolume", "MountDevice"), ("NodePublishVolume@node-1", "SetUp")],
)
def test_a_driver_fails_as_often_as_its_object_says(method, step):
    async def story(node):
        await node.until(lambda: drivers(node))
        await make_volume(node, attachRequired=False)
        await annotate(node, CSI_DRIVERS, DISK, fail=f"{method}:2:the disk is gone")
        await node.make(**using())
        await node.until_phase("Running", seconds=600.0)
        why = (f'MountVolume.{step} failed for volume "pv" : rpc error: code = Internal desc = '
               "the disk is gone")  # fmt: skip
        assert ("FailedMount", why) in node.events()

    told(story, DRIVERS)


def test_a_driver_takes_its_time():
    async def story(node):
        await node.until(lambda: drivers(node))
        await make_volume(node, attachRequired=False)
        await annotate(node, CSI_DRIVERS, DISK, seconds="NodeStageVolume:40;NodePublishVolume:20")
        began = node.clock.monotonic()
        await node.make(**using())
        await node.until_phase("Running")
        assert 60 <= node.clock.monotonic() - began < 62

    told(story, DRIVERS)


def test_a_driver_that_dies_in_between_is_missed():
    async def story(node):
        await node.until(lambda: drivers(node))
        await make_volume(node, attachRequired=False)
        await annotate(node, NODES, NODE, **{"drivers-away": DISK})
        await node.until(lambda: drivers(node) == [])
        await node.make(**using())
        text = f"driver name {DISK} not found in the list of registered CSI drivers"
        await node.until(lambda: any(text in message for _, message in node.events()))
        await annotate(node, NODES, NODE, **{"drivers-away": ""})
        await node.until_phase("Running", seconds=600.0)

    told(story, DRIVERS)


def test_volumes_of_other_drivers_are_taken_as_given():
    async def story(node):
        await make_volume(node)
        await node.make(**using())
        await node.until_phase("Running")

    told(story, PLUGINS)
