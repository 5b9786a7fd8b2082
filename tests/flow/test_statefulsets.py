from sampan.api import features
from sampan.api.features import Release
from sampan.api.resources import EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from tests.support.worlds.control_plane import story

with_sets = story(
    [
        "statefulset-controller",
        "garbage-collector-controller",
        "persistentvolumeclaim-protection-controller",
    ]
)


def stateful_set(replicas, **spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "c", "image": "v1"}]},
            },
            **spec,
        },
    }


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


async def create(plane, replicas, **spec):
    await plane.client.create(STATEFUL_SETS, stateful_set(replicas, **spec))
    await plane.settled()


async def patched(plane, spec):
    await plane.client.patch(STATEFUL_SETS, "default", "db", {"spec": spec}, patch_type="merge")
    await plane.settled()


async def set_image(plane, image):
    await patched(plane, {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})


async def pods(plane):
    listed = (await plane.client.list(PODS, "default")).items
    return {one["metadata"]["name"]: one for one in listed}


async def images(plane):
    found = await pods(plane)
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in found.items()}


async def make_ready(plane, *names):
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": plane.time_text()}
    patch = {"status": {"phase": "Running", "conditions": [ready]}}
    for name in names:
        await plane.client.patch(PODS, "default", name, patch, subresource="status")
    await plane.settled()


async def all_ready(plane):
    """What kubelets do, until nothing changes; returns the order in which pods became ready."""
    order = []
    while True:
        waiting = [
            n for n, pod in (await pods(plane)).items() if pod["status"]["phase"] != "Running"
        ]
        if not waiting:
            return order
        order += waiting
        await make_ready(plane, *waiting)


async def status(plane):
    return (await plane.client.get(STATEFUL_SETS, "default", "db"))["status"]


@with_sets
async def test_pods_come_in_order_each_when_the_one_before_is_ready(plane):
    await create(plane, 3)
    assert list(await pods(plane)) == ["db-0"]
    assert await all_ready(plane) == ["db-0", "db-1", "db-2"]
    pod = (await pods(plane))["db-1"]
    assert pod["spec"]["hostname"] == "db-1"
    assert pod["spec"]["subdomain"] == "db"
    labels = pod["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    found = await status(plane)
    assert labels["controller-revision-hash"] == found["updateRevision"]
    for field in ("replicas", "readyReplicas", "availableReplicas", "currentReplicas"):
        assert found[field] == 3
    messages = [one["message"] for one in (await plane.client.list(EVENTS, "default")).items]
    assert messages[0] == "Create Pod db-0 in StatefulSet db successful"


@with_sets
async def test_in_parallel_all_come_at_once(plane):
    await create(plane, 3, podManagementPolicy="Parallel")
    assert sorted(await pods(plane)) == ["db-0", "db-1", "db-2"]
    await all_ready(plane)
    await patched(plane, {"replicas": 0})
    assert await pods(plane) == {}


@with_sets
async def test_shrinking_takes_the_highest_first(plane):
    await create(plane, 3)
    await all_ready(plane)
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await plane.client.patch(PODS, "default", "db-2", held, patch_type="merge")
    await patched(plane, {"replicas": 1})
    found = await pods(plane)
    assert [name for name in found if "deletionTimestamp" in found[name]["metadata"]] == ["db-2"]
    free = {"metadata": {"finalizers": None}}
    await plane.client.patch(PODS, "default", "db-2", free, patch_type="merge")
    await plane.settled()
    assert list(await pods(plane)) == ["db-0"]


@with_sets
async def test_an_update_goes_from_the_highest_to_the_lowest(plane):
    await create(plane, 3)
    await all_ready(plane)
    before = (await status(plane))["currentRevision"]
    await set_image(plane, "v2")
    assert await images(plane) == {"db-0": "v1", "db-1": "v1", "db-2": "v2"}
    assert (await status(plane))["currentRevision"] == before
    assert await all_ready(plane) == ["db-2", "db-1", "db-0"]
    found = await status(plane)
    assert found["currentRevision"] == found["updateRevision"] != before
    assert found["updatedReplicas"] == found["currentReplicas"] == 3


@with_sets
async def test_a_partition_keeps_the_lower_ones_old(plane):
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await create(plane, 3, updateStrategy=rolling)
    await all_ready(plane)
    await set_image(plane, "v2")
    await all_ready(plane)
    assert await images(plane) == {"db-0": "v1", "db-1": "v1", "db-2": "v2"}
    await plane.client.delete(PODS, "default", "db-0")
    await plane.settled()
    assert (await images(plane))["db-0"] == "v1"
    await all_ready(plane)
    await patched(plane, {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    await all_ready(plane)
    assert set((await images(plane)).values()) == {"v2"}


@with_sets
async def test_one_at_a_time_whatever_is_asked_for(plane):
    """maxUnavailable is behind a gate that is off: it is dropped when it is written."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    await create(plane, 4, updateStrategy=rolling, podManagementPolicy="Parallel")
    stored = await plane.client.get(STATEFUL_SETS, "default", "db")
    assert stored["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 0}
    await all_ready(plane)
    await set_image(plane, "v2")
    assert sorted((await images(plane)).values()) == ["v1", "v1", "v1", "v2"]
    for _ in range(4):
        await all_ready(plane)
    assert set((await images(plane)).values()) == {"v2"}


@with_sets
async def two_at_once(plane):
    await create(plane, 2, podManagementPolicy="Parallel")
    stored = await plane.client.get(STATEFUL_SETS, "default", "db")
    assert stored["spec"]["updateStrategy"]["rollingUpdate"] == {
        "maxUnavailable": 1,
        "partition": 0,
    }
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "60%"}}
    await patched(plane, {"replicas": 4, "updateStrategy": rolling})
    await all_ready(plane)
    await set_image(plane, "v2")
    assert sorted((await images(plane)).values()) == ["v1", "v1", "v2", "v2"]
    for _ in range(2):
        await all_ready(plane)
    assert set((await images(plane)).values()) == {"v2"}


def test_as_many_at_a_time_as_are_asked_for_where_the_gate_is_on():
    """[V2]"""
    with features.used(Release(gates={"MaxUnavailableStatefulSet": True})):
        two_at_once()


@with_sets
async def test_claims_are_made_and_stay(plane):
    await create(plane, 1, volumeClaimTemplates=[CLAIM])
    [claim] = (await plane.client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items
    assert claim["metadata"]["name"] == "data-db-0"
    pod = (await pods(plane))["db-0"]
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-db-0"
    await plane.client.delete(STATEFUL_SETS, "default", "db", propagation="Background")
    await plane.settled(seconds=5)
    assert await pods(plane) == {}
    assert len((await plane.client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items) == 1


@with_sets
async def test_claims_go_where_the_policy_says_so(plane):
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    await create(
        plane,
        2,
        volumeClaimTemplates=[CLAIM],
        persistentVolumeClaimRetentionPolicy=policy,
        podManagementPolicy="Parallel",
    )
    await all_ready(plane)
    await patched(plane, {"replicas": 1})
    await plane.settled(seconds=5)
    claims = (await plane.client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items
    assert [one["metadata"]["name"] for one in claims] == ["data-db-0"]
    await plane.client.delete(STATEFUL_SETS, "default", "db", propagation="Background")
    await plane.settled(seconds=5)
    assert (await plane.client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items == []


@with_sets
async def test_a_failed_pod_is_made_anew_under_the_same_name(plane):
    await create(plane, 1)
    await all_ready(plane)
    uid = (await pods(plane))["db-0"]["metadata"]["uid"]
    failed = {"status": {"phase": "Failed", "conditions": []}}
    await plane.client.patch(
        PODS, "default", "db-0", failed, patch_type="merge", subresource="status"
    )
    await plane.settled()
    assert (await pods(plane))["db-0"]["metadata"]["uid"] != uid


@with_sets
async def test_ordinals_may_start_elsewhere(plane):
    await create(plane, 2, ordinals={"start": 5})
    assert await all_ready(plane) == ["db-5", "db-6"]


@with_sets
async def test_an_update_heals_pods_that_would_never_be_ready(plane):
    for most in (1, 2):
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}}
        await create(plane, 3, updateStrategy=rolling, podManagementPolicy="Parallel")
        await make_ready(plane, "db-1", "db-2")  # db-0 never gets ready
        await set_image(plane, "v2")
        await all_ready(plane)
        assert set((await images(plane)).values()) == {"v2"}
        await plane.client.delete(STATEFUL_SETS, "default", "db", propagation="Foreground")
        await plane.settled(seconds=5)
