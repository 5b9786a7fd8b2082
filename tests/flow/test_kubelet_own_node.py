"""The node decides with its Node object as it is now, whoever changed it, against the real API
server. Virtual time, simulated runtime."""

import asyncio

import pytest

from sampan.api.resources import EVENTS, NODES, PODS
from tests.flow.test_kubelet_real_api import Node
from tests.support.worlds.control_plane import story

pytestmark = pytest.mark.slow

DONGLE = "example.com/dongle"


def asks_for(name, amount):
    resources = {"requests": {name: amount}, "limits": {name: amount}}
    return [{"name": "main", "image": "a", "resources": resources}]


async def patched(plane, patch, subresource="", kind="merge"):
    return await plane.client.patch(
        NODES, "", "node-1", patch, patch_type=kind, subresource=subresource
    )


@story(["namespace", "serviceaccount"])
async def test_a_label_that_was_just_added_counts(plane):
    """Even where the pod is heard of first: no pause between the two."""
    async with Node(plane) as node:
        await patched(plane, {"metadata": {"labels": {"color": "green"}}})
        wanted = {"nodeSelector": {"color": "green"}, "automountServiceAccountToken": False}
        await node.make(**wanted)
        await node.until_phase("Running")
        await patched(plane, {"metadata": {"labels": {"color": None}}})
        await node.make("late", **wanted)
        await node.until_phase("Failed", "late")
        late = (await node.pod("late"))["status"]
        assert late["reason"] == "NodeAffinity"
        assert "containerStatuses" not in late  # nothing was begun: kubectl shows the reason
        assert [one["type"] for one in late.get("conditions", ())] == []
        assert (await node.pod())["status"]["phase"] == "Running"  # what runs is left alone


@story(["namespace", "serviceaccount"])
async def test_a_taint_that_was_removed_refuses_nobody(plane):
    async with Node(plane) as node:
        taint = {"key": "a", "value": "b", "effect": "NoExecute"}
        await patched(plane, {"spec": {"taints": [taint]}})
        await node.make("first", automountServiceAccountToken=False)
        await node.until_phase("Failed", "first")
        assert (await node.pod("first"))["status"]["reason"] == "TaintToleration"
        await patched(plane, {"spec": {"taints": None}})
        await node.make("second", automountServiceAccountToken=False)
        await node.until_phase("Running", "second")


@story(["namespace", "serviceaccount"])
async def test_an_extended_resource_that_somebody_advertises_is_shown_counted_and_withdrawn(plane):
    """As "Advertise Extended Resources for a Node" does it: only the capacity is patched."""
    async with Node(plane) as node:
        path = f"/status/capacity/{DONGLE.replace('/', '~1')}"
        await patched(plane, [{"op": "add", "path": path, "value": "4"}], "status", "json")
        await node.make("three", containers=asks_for(DONGLE, "3"))
        await node.until_phase("Running", "three")
        await asyncio.sleep(2)
        shown = await plane.client.get(NODES, "", "node-1")
        assert shown["status"]["allocatable"][DONGLE] == "4"
        await node.make("two", containers=asks_for(DONGLE, "2"))
        await node.until_phase("Failed", "two")
        status = (await node.pod("two"))["status"]
        assert status["reason"] == f"OutOf{DONGLE}"
        assert status["message"] == (
            f"Pod was rejected: Node didn't have enough resource: {DONGLE}, "
            "requested: 2, used: 3, capacity: 4"
        )
        await patched(plane, [{"op": "remove", "path": path}], "status", "json")
        await asyncio.sleep(2)
        status = (await plane.client.get(NODES, "", "node-1"))["status"]
        assert DONGLE not in status["capacity"]
        assert DONGLE not in status["allocatable"]


@story(["namespace", "serviceaccount"])
async def test_a_resource_that_the_node_does_not_know_is_the_schedulers_business(plane):
    async with Node(plane) as node:
        await node.make(containers=asks_for("example.com/license", "1"))
        await node.until_phase("Running")


@story(["namespace", "serviceaccount"])
async def test_a_pod_that_goes_while_the_node_is_read_again_leaves_nothing(plane):
    async with Node(plane) as node:
        await node.make(nodeSelector={"color": "blue"}, automountServiceAccountToken=False)
        await plane.client.delete(PODS, "default", "web", grace_seconds=0)
        await node.until_gone()
        await asyncio.sleep(5)
        assert node.kubelet.pods() == []
        assert node.kubelet.is_idle()


@story(["namespace", "serviceaccount"])
async def test_what_others_write_into_the_status_is_put_right_without_a_race(plane):
    """Two writers that contradict each other make one write a second, not as many as they can."""
    async with Node(plane) as node:
        wrong = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
        await patched(plane, {"status": {"conditions": wrong}}, "status", "strategic")
        await asyncio.sleep(2)
        shown = await plane.client.get(NODES, "", "node-1")
        ready = next(one for one in shown["status"]["conditions"] if one["type"] == "Ready")
        assert ready["status"] == "True"
        before = int(shown["metadata"]["resourceVersion"])

        async def contradict():
            while True:
                await patched(plane, {"status": {"nodeInfo": {"bootID": "other"}}}, "status")
                await asyncio.sleep(0.05)

        rival = asyncio.get_running_loop().create_task(contradict())
        await asyncio.sleep(10)
        rival.cancel()
        await asyncio.sleep(3)
        shown = await plane.client.get(NODES, "", "node-1")
        assert shown["status"]["nodeInfo"]["bootID"] != "other"
        assert int(shown["metadata"]["resourceVersion"]) - before < 60
        events = await plane.client.list(EVENTS, "default")
        assert not [one for one in events.items if one["reason"] == "NodeNotReady"]
        assert node.kubelet.node_ready.is_set()
