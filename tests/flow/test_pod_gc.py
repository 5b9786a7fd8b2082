from sampan.api.errors import NotFound
from sampan.api.resources import NODES, PODS
from tests.support.worlds.control_plane import story

with_nodes = story(
    [
        "pod-garbage-collector-controller",
    ]
)


async def join(plane, name):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    await plane.client.create(NODES, node)
    await plane.settled()


async def place(plane, name, node, **spec):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": node, **spec},
    }
    await plane.client.create(PODS, pod)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": plane.time_text()}
    patch = {"status": {"phase": "Running", "conditions": [ready]}}
    await plane.client.patch(PODS, "default", name, patch, subresource="status")


async def is_leaving(plane, name):
    try:
        pod = await plane.client.get(PODS, "default", name)
    except NotFound:
        return True
    return "deletionTimestamp" in pod["metadata"]


@with_nodes
async def test_pods_of_a_deleted_node_go_after_a_quarantine(plane):
    await join(plane, "n1")
    await place(plane, "web", "n1")
    await plane.client.delete(NODES, "", "n1")
    await plane.settled(seconds=30)
    assert not await is_leaving(plane, "web")
    await plane.settled(seconds=30)
    assert await is_leaving(plane, "web")


@with_nodes
async def test_a_node_that_comes_back_in_time_keeps_its_pods(plane):
    await join(plane, "n1")
    await place(plane, "web", "n1")
    await plane.client.delete(NODES, "", "n1")
    await plane.settled(seconds=10)
    await plane.client.create(
        NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    )
    await plane.settled(seconds=60)
    assert not await is_leaving(plane, "web")


@with_nodes
async def test_a_pod_that_ends_without_ever_having_had_a_node_goes(plane):
    await place(plane, "web", "")
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await plane.client.patch(PODS, "default", "web", held, patch_type="merge")
    await plane.client.delete(PODS, "default", "web", grace_seconds=30)
    await plane.settled()
    await plane.client.patch(
        PODS, "default", "web", {"metadata": {"finalizers": None}}, patch_type="merge"
    )
    await plane.settled()
    assert await is_leaving(plane, "web")


@with_nodes
async def test_pods_of_a_node_out_of_service_go_at_once(plane):
    await join(plane, "n1")
    await place(plane, "web", "n1")
    await plane.client.delete(PODS, "default", "web")
    await plane.settled()
    assert (await plane.client.get(PODS, "default", "web"))["metadata"]["deletionTimestamp"]
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    await plane.client.patch(NODES, "", "n1", {"spec": {"taints": [taint]}}, patch_type="merge")
    await plane.settled()
    assert (await plane.client.list(PODS, "default")).items == []
