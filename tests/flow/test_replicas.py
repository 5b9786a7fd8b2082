from sampan.api.resources import EVENTS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS
from tests.support.worlds.control_plane import story

with_sets = story(
    ["replicaset-controller", "replicationcontroller-controller", "garbage-collector-controller"]
)

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "pause"}]},
}


def replica_set(replicas, name="web", **spec):
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": selector, "template": TEMPLATE, **spec},
    }


async def pods(plane):
    return (await plane.client.list(PODS, "default")).items


async def set_status(plane, pod, ready=True, **status):
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": plane.time_text()}
    patch = {"status": {"phase": "Running", "conditions": [condition], **status}}
    name = pod["metadata"]["name"]
    await plane.client.patch(PODS, "default", name, patch, patch_type="merge", subresource="status")


async def scale(plane, replicas, resource=REPLICA_SETS, **meta):
    patch = {"spec": {"replicas": replicas}}
    await plane.client.patch(resource, "default", "web", patch, patch_type="merge")
    await plane.settled()


async def status(plane, resource=REPLICA_SETS):
    return (await plane.client.get(resource, "default", "web"))["status"]


@with_sets
async def test_a_set_makes_its_pods_and_says_so(plane):
    await plane.client.create(REPLICA_SETS, replica_set(3))
    await plane.settled()
    made = await pods(plane)
    assert len(made) == 3
    for pod in made:
        assert pod["metadata"]["name"].startswith("web-")
        [owner] = pod["metadata"]["ownerReferences"]
        assert owner["controller"] is owner["blockOwnerDeletion"] is True
    events = (await plane.client.list(EVENTS, "default")).items
    expected = {f"Created pod: {pod['metadata']['name']}" for pod in made}
    assert {one["message"] for one in events} == expected
    assert {one["reason"] for one in events} == {"SuccessfulCreate"}
    assert (await status(plane))["replicas"] == 3
    for pod in made:
        await set_status(plane, pod)
    await plane.settled()
    assert await status(plane) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
    }


@with_sets
async def test_scaling_makes_and_deletes_just_what_is_needed(plane):
    await plane.client.create(REPLICA_SETS, replica_set(2))
    await plane.settled()
    before = {one["metadata"]["uid"] for one in await pods(plane)}
    await scale(plane, 5)
    grown = await pods(plane)
    assert len(grown) == 5
    assert before <= {one["metadata"]["uid"] for one in grown}
    for pod in grown:
        if pod["metadata"]["uid"] in before:
            await set_status(plane, pod)
    await scale(plane, 2)
    # Those that are not ready go first.
    assert {one["metadata"]["uid"] for one in await pods(plane)} == before


@with_sets
async def test_a_pod_that_is_deleted_or_failed_is_replaced(plane):
    await plane.client.create(REPLICA_SETS, replica_set(2))
    await plane.settled()
    first, second = await pods(plane)
    await plane.client.delete(PODS, "default", first["metadata"]["name"], grace_seconds=0)
    patch = {"status": {"phase": "Failed"}}
    await plane.client.patch(
        PODS,
        "default",
        second["metadata"]["name"],
        patch,
        patch_type="merge",
        subresource="status",
    )
    await plane.settled()
    active = [one for one in await pods(plane) if one["status"]["phase"] != "Failed"]
    assert len(active) == 2


@with_sets
async def test_matching_orphans_are_adopted_and_strangers_released(plane):
    orphan = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "orphan", "namespace": "default", "labels": {"app": "web"}},
        "spec": TEMPLATE["spec"],
    }
    await plane.client.create(PODS, orphan)
    await plane.client.create(REPLICA_SETS, replica_set(1))
    await plane.settled()
    [adopted] = await pods(plane)
    assert adopted["metadata"]["name"] == "orphan"
    assert adopted["metadata"]["ownerReferences"][0]["name"] == "web"
    patch = {"metadata": {"labels": {"app": "other"}}}
    await plane.client.patch(PODS, "default", "orphan", patch, patch_type="merge")
    await plane.settled()
    released = await plane.client.get(PODS, "default", "orphan")
    assert not released["metadata"].get("ownerReferences")
    assert len(await pods(plane)) == 2


@with_sets
async def test_pods_are_available_only_after_their_minimum_time(plane):
    await plane.client.create(REPLICA_SETS, replica_set(1, minReadySeconds=30))
    await plane.settled()
    [pod] = await pods(plane)
    await set_status(plane, pod)
    await plane.settled()
    assert (await status(plane))["readyReplicas"] == 1
    assert "availableReplicas" not in await status(plane)
    await plane.settled(seconds=31)
    assert (await status(plane))["availableReplicas"] == 1


@with_sets
async def test_deleting_a_set_deletes_its_pods(plane):
    await plane.client.create(REPLICA_SETS, replica_set(3))
    await plane.settled()
    await plane.client.delete(REPLICA_SETS, "default", "web", propagation="Background")
    await plane.settled(seconds=1)
    assert await pods(plane) == []


@with_sets
async def test_a_large_set_needs_few_writes(plane):
    before = plane.store.revision
    await plane.client.create(REPLICA_SETS, replica_set(300))
    await plane.settled()
    assert len(await pods(plane)) == 300
    # One per pod, one per event (the spam filter stops those at 25), the set, and its status.
    assert plane.store.revision - before <= 300 + 25 + 1 + 12


@with_sets
async def test_a_replication_controller_does_the_same(plane):
    controller = replica_set(2)
    controller |= {"apiVersion": "v1", "kind": "ReplicationController"}
    controller["spec"]["selector"] = {"app": "web"}
    await plane.client.create(REPLICATION_CONTROLLERS, controller)
    await plane.settled()
    assert len(await pods(plane)) == 2
    assert (await status(plane, REPLICATION_CONTROLLERS))["replicas"] == 2
    await scale(plane, 0, REPLICATION_CONTROLLERS)
    assert await pods(plane) == []
