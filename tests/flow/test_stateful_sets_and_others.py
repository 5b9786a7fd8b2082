"""StatefulSets beside what others left, took or changed: revisions, claims, labels."""

from sampan.api.resources import (
    CONTROLLER_REVISIONS,
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
)
from tests.support.worlds.control_plane import story

with_sets = story(["statefulset-controller", "garbage-collector-controller"])
CLAIM = {
    "metadata": {"name": "v"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


async def create(plane, replicas=2, **spec):
    labels = {"app": "db"}
    container = {"name": "c", "image": "v1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    selector = {"matchLabels": labels}
    found = {"replicas": replicas, "serviceName": "db", "selector": selector, **spec}
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {"podManagementPolicy": "Parallel", **found, "template": template},
    }
    made = await plane.client.create(STATEFUL_SETS, stateful_set, "default")
    await plane.settled()
    return made


async def pods(plane):
    listed = (await plane.client.list(PODS, "default")).items
    return {pod["metadata"]["name"]: pod for pod in listed}


async def run_all(plane):
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": plane.time_text()}
    patch = {"status": {"phase": "Running", "conditions": [ready]}}
    for name in await pods(plane):
        await plane.client.patch(PODS, "default", name, patch, subresource="status")
    await plane.settled()


async def status(plane):
    return (await plane.client.get(STATEFUL_SETS, "default", "db"))["status"]


async def claim(plane, name):
    return await plane.client.get(PERSISTENT_VOLUME_CLAIMS, "default", name)


async def hold_claim(plane, *finalizers):
    patch = {"metadata": {"finalizers": list(finalizers) or None}}
    await plane.client.patch(
        PERSISTENT_VOLUME_CLAIMS, "default", "v-db-0", patch, patch_type="merge"
    )


async def lose_claim(plane):
    await hold_claim(plane)
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "v-db-0")


async def messages(plane, reason):
    events = (await plane.client.list(EVENTS, "default")).items
    return [event["message"] for event in events if event["reason"] == reason]


@with_sets
async def test_a_set_that_was_orphaned_takes_its_revisions_and_pods_up_again(plane):
    await create(plane)
    await run_all(plane)
    before = await pods(plane)
    await plane.client.delete(STATEFUL_SETS, "default", "db", propagation="Orphan")
    await plane.settled()
    made = await create(plane, replicas=3)
    await run_all(plane)
    found = await status(plane)
    assert (found["replicas"], found["readyReplicas"], found["collisionCount"]) == (3, 3, 0)
    after = await pods(plane)
    assert {after[name]["metadata"]["uid"] for name in before} == {
        pod["metadata"]["uid"] for pod in before.values()
    }
    [revision] = (await plane.client.list(CONTROLLER_REVISIONS, "default")).items
    assert revision["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert "controller.kubernetes.io/hash" in revision["metadata"]["labels"]


@with_sets
async def test_a_name_that_another_revision_has_is_passed_over_and_counted(plane):
    await create(plane, replicas=0)
    [revision] = (await plane.client.list(CONTROLLER_REVISIONS, "default")).items
    name = revision["metadata"]["name"]
    await plane.client.delete(STATEFUL_SETS, "default", "db", propagation="Background")
    await plane.settled()
    taken = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": name},
        "data": {"spec": {}},
        "revision": 7,
    }
    await plane.client.create(CONTROLLER_REVISIONS, taken, "default")
    await plane.settled()
    await create(plane, replicas=1)
    found = await status(plane)
    assert found["collisionCount"] == 1
    assert found["updateRevision"] != name
    assert list(await pods(plane)) == ["db-0"]


@with_sets
async def test_a_claim_that_a_pending_pod_lost_is_made_again_whatever_the_order(plane):
    for policy in ("Parallel", "OrderedReady"):
        await create(plane, 1, podManagementPolicy=policy, volumeClaimTemplates=[CLAIM])
        lost = await claim(plane, "v-db-0")
        await lose_claim(plane)
        touch = {"metadata": {"annotations": {"touched": "yes"}}}
        await plane.client.patch(PODS, "default", "db-0", touch, patch_type="merge")
        await plane.settled()
        again = await claim(plane, "v-db-0")
        assert again["metadata"]["uid"] != lost["metadata"]["uid"], policy
        await plane.client.delete(STATEFUL_SETS, "default", "db", propagation="Background")
        await plane.settled()
        await lose_claim(plane)


@with_sets
async def test_the_name_of_a_pod_stays_in_its_labels(plane):
    await create(plane, 1)
    await run_all(plane)
    label = "statefulset.kubernetes.io/pod-name"
    patch = {"metadata": {"labels": {label: None}}}
    await plane.client.patch(PODS, "default", "db-0", patch, patch_type="merge")
    await plane.settled()
    assert (await pods(plane))["db-0"]["metadata"]["labels"][label] == "db-0"
    assert await messages(plane, "SuccessfulUpdate") == [
        "Update Pod db-0 in StatefulSet db successful"
    ]


@with_sets
async def test_claims_have_the_set_for_a_controller_where_they_go_with_it(plane):
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    made = await create(
        plane, 2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy
    )
    [owner] = (await claim(plane, "v-db-1"))["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
    assert owner["blockOwnerDeletion"]
    await run_all(plane)
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    await plane.client.patch(PODS, "default", "db-1", hold, patch_type="merge")
    fewer = {"spec": {"replicas": 1}}
    await plane.client.patch(STATEFUL_SETS, "default", "db", fewer, patch_type="merge")
    await plane.settled()
    [owner] = (await claim(plane, "v-db-1"))["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "db-1", True)


@with_sets
async def test_a_claim_that_another_controller_has_is_left_alone_and_told_of(plane):
    other = {
        "apiVersion": "example.com/v1", "kind": "Owner", "name": "o", "uid": "u",
        "controller": True,
    }  # fmt: skip
    there = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "v-db-0", "ownerReferences": [other]},
        "spec": CLAIM["spec"],
    }
    await plane.stop_controllers()
    await plane.client.create(PERSISTENT_VOLUME_CLAIMS, there, "default")
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    claims = {"volumeClaimTemplates": [CLAIM], "persistentVolumeClaimRetentionPolicy": policy}
    await plane.start_controllers()
    await create(plane, 1, **claims)
    await run_all(plane)
    [owner] = (await claim(plane, "v-db-0"))["metadata"]["ownerReferences"]
    assert owner["name"] == "o"
    [message, *_] = await messages(plane, "ConflictingController")
    assert message.startswith("PersistentVolumeClaim v-db-0 has a conflicting OwnerReference")


@with_sets
async def test_a_pod_waits_for_a_claim_that_is_on_its_way_out(plane):
    await create(plane, 1, volumeClaimTemplates=[CLAIM])
    await hold_claim(plane, "example.com/hold")
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "v-db-0")
    await plane.client.delete(PODS, "default", "db-0", grace_seconds=0)
    await plane.settled(seconds=2)
    assert await pods(plane) == {}
    failures = await messages(plane, "FailedCreate")
    assert set(failures) == {
        "Create Pod db-0 in StatefulSet db failed error: pvc v-db-0 is being deleted"
    }
    await hold_claim(plane)
    await plane.settled(seconds=2)
    assert list(await pods(plane)) == ["db-0"]


@with_sets
async def test_claims_are_told_of_with_their_pods(plane):
    await create(plane, 1, volumeClaimTemplates=[CLAIM])
    assert sorted(await messages(plane, "SuccessfulCreate")) == [
        "Create Claim v-db-0 Pod db-0 in StatefulSet db success",
        "Create Pod db-0 in StatefulSet db successful",
    ]
