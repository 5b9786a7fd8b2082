import asyncio

from sampan.api import features
from sampan.api.errors import NotFound
from sampan.api.features import Release
from sampan.api.resources import EVENTS, LEASES, NODES, PODS
from tests.support.worlds.control_plane import story

with_nodes = story(
    [
        "node-lifecycle-controller",
        "taint-eviction-controller",
    ]
)


async def join(plane, name):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    await plane.client.create(NODES, node)
    await report(plane, name)
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
    }
    await plane.client.create(LEASES, lease)
    await plane.settled()


async def report(plane, name, ready="True", **others):
    stamp = plane.time_text()
    states = {"Ready": ready, "MemoryPressure": "False", "DiskPressure": "False", **others}
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": "Kubelet",
            "message": "",
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
        }
        for kind, status in states.items()
    ]
    patch = {"status": {"conditions": conditions}}
    await plane.client.patch(NODES, "", name, patch, subresource="status")


async def live(plane, names, seconds):
    """So many seconds in which these nodes renew their leases."""
    for number in range(int(seconds / 10)):
        await asyncio.sleep(10)
        for name in names:
            patch = {"spec": {"renewTime": f"2026-01-01T00:{number % 60:02}:00.000000Z"}}
            await plane.client.patch(LEASES, "kube-node-lease", name, patch, patch_type="merge")


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


async def taints(plane, name):
    node = await plane.client.get(NODES, "", name)
    found = node["spec"].get("taints") or ()
    return {(one["key"].removeprefix("node.kubernetes.io/"), one["effect"]) for one in found}


async def is_leaving(plane, name):
    try:
        pod = await plane.client.get(PODS, "default", name)
    except NotFound:
        return True
    return "deletionTimestamp" in pod["metadata"]


async def reasons(plane):
    return {one["reason"] for one in (await plane.client.list(EVENTS, "")).items}


@with_nodes
async def test_a_node_that_becomes_ready_loses_its_taint_at_once(plane):
    await plane.client.create(
        NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    )
    await plane.settled()
    assert await taints(plane, "n1") == {("not-ready", "NoSchedule")}
    await report(plane, "n1")
    await plane.settled()
    assert await taints(plane, "n1") == set()
    assert "RegisteredNode" in await reasons(plane)
    await plane.client.delete(NODES, "", "n1")
    await plane.settled()
    events = {event["reason"]: event for event in (await plane.client.list(EVENTS)).items}
    removed = events["RemovingNode"]
    assert removed["message"] == "Node n1 event: Removing Node n1 from Controller"
    assert removed["involvedObject"]["uid"] == events["RegisteredNode"]["involvedObject"]["uid"]


@with_nodes
async def test_conditions_and_cordons_become_taints(plane):
    await join(plane, "n1")
    await report(plane, "n1", MemoryPressure="True")
    await plane.client.patch(NODES, "", "n1", {"spec": {"unschedulable": True}})
    await plane.settled()
    assert await taints(plane, "n1") == {
        ("memory-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    }
    await report(plane, "n1")
    await plane.client.patch(NODES, "", "n1", {"spec": {"unschedulable": None}})
    await plane.settled()
    assert await taints(plane, "n1") == set()


@with_nodes
async def test_taints_of_others_stay(plane):
    await join(plane, "n1")
    patch = {"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}], "unschedulable": True}}
    await plane.client.patch(NODES, "", "n1", patch, patch_type="merge")
    await plane.settled()
    assert await taints(plane, "n1") == {("mine", "NoExecute"), ("unschedulable", "NoSchedule")}


@with_nodes
async def test_a_silent_node_is_unreachable_and_its_pods_are_not_ready(plane):
    await join(plane, "n1")
    await join(plane, "n2")
    await place(plane, "web", "n1")
    await live(plane, ["n1", "n2"], 200)
    assert await taints(plane, "n1") == set()
    await live(plane, ["n2"], 70)
    assert await taints(plane, "n1") == {
        ("unreachable", "NoSchedule"),
        ("unreachable", "NoExecute"),
    }
    assert 'node_collector_evictions_total{zone=""} 1\n' in plane.metrics.render()
    node = await plane.client.get(NODES, "", "n1")
    ready = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
    assert ready["status"] == "Unknown"
    assert (ready["reason"], ready["message"]) == (
        "NodeStatusUnknown",
        "Kubelet stopped posting node status.",
    )
    pod = await plane.client.get(PODS, "default", "web")
    assert pod["status"]["conditions"][0]["status"] == "False"
    assert "NodeNotReady" in await reasons(plane)
    assert await taints(plane, "n2") == set()
    await report(plane, "n1")
    await plane.settled()
    assert await taints(plane, "n1") == set()


def test_silence_is_told_when_the_server_has_no_newer_lease():
    """As the story above, with NodeControllerLeaseCircuitBreaker."""
    with features.used(Release("1.37")):
        test_a_silent_node_is_unreachable_and_its_pods_are_not_ready()


@with_nodes
async def test_pods_leave_an_unreachable_node_when_their_time_is_over(plane):
    await join(plane, "n1")
    await join(plane, "n2")
    patient = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
    }
    await place(plane, "five", "n1")  # the default tolerates 300 s
    await place(plane, "short", "n1", tolerations=[{**patient, "tolerationSeconds": 30}])
    await place(plane, "ever", "n1", tolerations=[patient])
    await live(plane, ["n2"], 70)
    assert not await is_leaving(plane, "short")
    await live(plane, ["n2"], 40)
    assert await is_leaving(plane, "short")
    assert not await is_leaving(plane, "five")
    await live(plane, ["n2"], 300)
    assert await is_leaving(plane, "five")
    assert not await is_leaving(plane, "ever")
    pod = await plane.client.get(PODS, "default", "five")
    stated = {one["type"]: one["reason"] for one in pod["status"]["conditions"] if "reason" in one}
    assert stated["DisruptionTarget"] == "DeletionByTaintManager"
    assert "TaintManagerEviction" in await reasons(plane)


@with_nodes
async def test_when_all_nodes_are_silent_nobody_is_evicted(plane):
    await join(plane, "n1")
    await place(plane, "web", "n1")
    await plane.settled(seconds=1000)
    assert await taints(plane, "n1") == {("unreachable", "NoSchedule")}
    assert not await is_leaving(plane, "web")


@with_nodes
async def test_nodes_are_evicted_one_by_one(plane):
    names = [f"n{number}" for number in range(8)]
    for name in names:
        await join(plane, name)
    await live(plane, names[2:], 40)

    async def evicted():
        found = [("unreachable", "NoExecute") in await taints(plane, name) for name in names]
        return found.count(True)

    while await evicted() == 0:
        await asyncio.sleep(1)
    assert await evicted() == 1
    await asyncio.sleep(8)
    assert await evicted() == 1
    await asyncio.sleep(4)
    assert await evicted() == 2


@with_nodes
async def test_a_kubelet_that_lives_is_not_fought_over_its_pods(plane):
    await join(plane, "n1")
    await place(plane, "web", "n1")
    await report(plane, "n1", ready="False")
    await plane.settled()
    pod = await plane.client.get(PODS, "default", "web")
    assert pod["status"]["conditions"][0]["status"] == "True"


@with_nodes
async def test_when_the_last_node_falls_the_evicted_ones_may_stay(plane):
    await join(plane, "n1")
    await join(plane, "n2")
    await live(plane, ["n2"], 100)
    assert ("unreachable", "NoExecute") in await taints(plane, "n1")
    await plane.settled(seconds=100)
    assert await taints(plane, "n1") == await taints(plane, "n2")
    assert await taints(plane, "n1") == {("unreachable", "NoSchedule")}


@with_nodes
async def test_pods_leave_a_node_that_a_person_tainted_when_their_time_is_over(plane):
    """Whose taint does not say when it was added; and whose end takes the sentence with it."""
    await join(plane, "n1")
    patient = {"key": "mine", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}

    async def taint(*taints):
        patch = {"spec": {"taints": list(taints)}}
        await plane.client.patch(NODES, "", "n1", patch, patch_type="merge")
        await plane.settled()

    await place(plane, "patient", "n1", tolerations=[patient])
    for _ in range(2):
        await taint({"key": "mine", "effect": "NoExecute"})
        await live(plane, ["n1"], 40)
        assert not await is_leaving(plane, "patient")
        await taint()
    await taint({"key": "mine", "effect": "NoExecute"})
    await live(plane, ["n1"], 40)
    await place(plane, "late", "n1", tolerations=[patient])
    await live(plane, ["n1"], 30)
    assert await is_leaving(plane, "patient")
    assert not await is_leaving(plane, "late")
    await live(plane, ["n1"], 50)
    assert await is_leaving(plane, "late")
