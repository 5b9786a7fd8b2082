"""A node falls silent: its pods are marked, kept for a while, and then evicted [N17]."""

from sampan.api.conditions import condition_of
from sampan.api.nodes import taints_of
from sampan.api.objects import is_deleted
from sampan.api.resources import NODES, PODS
from sampan.testing.control_plane import ControlPlane, story

NAMES = ["node-lifecycle-controller", "taint-eviction-controller"]


async def node_with_a_pod(plane: ControlPlane) -> None:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": plane.time_text()}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    await plane.client.create(NODES, {**node, "status": {"conditions": [ready]}})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i:1"}]},
    }
    await plane.client.create(PODS, pod, "default")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await plane.client.patch(PODS, "default", "web", {"status": status}, subresource="status")


def effects(node):
    return sorted((taint["key"].split("/")[1], taint["effect"]) for taint in taints_of(node))


@story(NAMES)
async def test_a_silent_node_is_tainted_at_once_and_its_pods_go_after_their_toleration(plane):
    await node_with_a_pod(plane)
    await plane.settled()
    assert effects(await plane.client.get(NODES, "", "n1")) == []
    await plane.settled(60)
    node = await plane.client.get(NODES, "", "n1")
    assert effects(node) == [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]
    pod = await plane.client.get(PODS, "default", "web")
    assert condition_of(pod, "Ready")["status"] == "False"
    assert not is_deleted(pod)
    await plane.settled(300)  # the default tolerationSeconds
    pod = await plane.client.get(PODS, "default", "web")
    assert is_deleted(pod)
    assert condition_of(pod, "DisruptionTarget")["reason"] == "DeletionByTaintManager"


@story(NAMES)
async def test_a_node_that_comes_back_in_time_keeps_its_pods(plane):
    await node_with_a_pod(plane)
    await plane.settled(60)
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": plane.time_text()}
    await plane.client.patch(
        NODES, "", "n1", {"status": {"conditions": [ready]}}, subresource="status"
    )
    await plane.settled()
    assert effects(await plane.client.get(NODES, "", "n1")) == []
    await plane.settled(40)
    assert not is_deleted(await plane.client.get(PODS, "default", "web"))
