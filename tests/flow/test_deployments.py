from sampan.api.resources import DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS
from sampan.controllers.workloads.deployment import deployment_controller
from sampan.controllers.workloads.replicaset import replicaset_controller
from tests.support import virtual_time
from tests.support.worlds.control_plane import ControlPlane, story
from tests.support.worlds.faulty_client import Fate, Faults, FaultyClient

with_deployments = story(
    ["deployment-controller", "replicaset-controller", "garbage-collector-controller"]
)


def deployment(replicas, image="v1", **spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
            **spec,
        },
    }


async def created(plane, *arguments, **keywords):
    await plane.client.create(DEPLOYMENTS, deployment(*arguments, **keywords))
    await plane.settled()


async def patched(plane, **spec):
    await plane.client.patch(DEPLOYMENTS, "default", "web", {"spec": spec}, patch_type="merge")
    await plane.settled()


async def set_image(plane, image):
    containers = [{"name": "c", "image": image}]
    await patched(plane, template={"spec": {"containers": containers}})


async def sizes(plane):
    """Image → size of its set."""
    listed = (await plane.client.list(REPLICA_SETS, "default")).items
    found = {}
    for one in listed:
        image = one["spec"]["template"]["spec"]["containers"][0]["image"]
        found[image] = one["spec"]["replicas"]
    return found


async def make_ready(plane, most=1000):
    """What kubelets do; returns how many pods became ready."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": plane.time_text()}
    patch = {"status": {"phase": "Running", "conditions": [ready]}}
    made = 0
    for pod in (await plane.client.list(PODS, "default")).items:
        waiting = not (pod.get("status") or {}).get("conditions")
        if waiting and made < most and "deletionTimestamp" not in pod["metadata"]:
            made += 1
            await plane.client.patch(
                PODS,
                "default",
                pod["metadata"]["name"],
                patch,
                patch_type="merge",
                subresource="status",
            )
    await plane.settled()
    return made


async def rolled_out(plane):
    for _ in range(50):
        if not await make_ready(plane):
            return
    raise AssertionError("the rollout does not end")


async def shown(plane):
    return await plane.client.get(DEPLOYMENTS, "default", "web")


async def conditions(plane):
    stated = (await shown(plane))["status"]["conditions"]
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in stated}


async def messages(plane):
    events = (await plane.client.list(EVENTS, "default")).items
    return [
        one["message"] for one in events if one["source"]["component"] == "deployment-controller"
    ]


@with_deployments
async def test_a_deployment_comes_up_and_says_so(plane):
    await created(plane, 3)
    [replica_set] = (await plane.client.list(REPLICA_SETS, "default")).items
    name = replica_set["metadata"]["name"]
    word = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert name == f"web-{word}"
    assert replica_set["metadata"]["annotations"] == {
        "deployment.kubernetes.io/revision": "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert await messages(plane) == [f"Scaled up replica set {name} from 0 to 3"]
    assert (await conditions(plane))["Progressing"][1] == "ReplicaSetUpdated"
    assert (await conditions(plane))["Available"][0] == "False"
    await rolled_out(plane)
    assert await conditions(plane) == {
        "Available": (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        "Progressing": (
            "True",
            "NewReplicaSetAvailable",
            f'ReplicaSet "{name}" has successfully progressed.',
        ),
    }
    found = await shown(plane)
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    status = dict(found["status"])
    del status["conditions"]
    assert status == {
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }


@with_deployments
async def test_a_rolling_update_keeps_within_surge_and_unavailable(plane):
    await created(plane, 4)  # 25 %: one more, one less
    await rolled_out(plane)
    await set_image(plane, "v2")
    while True:
        pods = (await plane.client.list(PODS, "default")).items
        living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        ready = [pod for pod in living if pod["status"].get("conditions")]
        assert len(living) <= 5
        assert len(ready) >= 3
        if not await make_ready(plane, most=1):
            break
    assert await sizes(plane) == {"v1": 0, "v2": 4}
    assert (await conditions(plane))["Progressing"][1] == "NewReplicaSetAvailable"


@with_deployments
async def test_a_rollback_reuses_the_old_set_under_a_new_revision(plane):
    await created(plane, 2)
    await rolled_out(plane)
    await set_image(plane, "v2")
    await rolled_out(plane)
    await set_image(plane, "v1")
    await rolled_out(plane)
    assert await sizes(plane) == {"v1": 2, "v2": 0}
    listed = (await plane.client.list(REPLICA_SETS, "default")).items
    [first] = [one for one in listed if one["spec"]["replicas"]]
    annotations = first["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "3"
    assert annotations["deployment.kubernetes.io/revision-history"] == "1"
    found = await shown(plane)
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


@with_deployments
async def test_recreate_stops_the_old_pods_first(plane):
    await created(plane, 2, strategy={"type": "Recreate"})
    await rolled_out(plane)
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    pods = (await plane.client.list(PODS, "default")).items
    for pod in pods:
        name = pod["metadata"]["name"]
        await plane.client.patch(PODS, "default", name, held, patch_type="merge")
    await set_image(plane, "v2")
    assert await sizes(plane) == {"v1": 0}
    for pod in pods:
        name = pod["metadata"]["name"]
        free = {"metadata": {"finalizers": None}}
        await plane.client.patch(PODS, "default", name, free, patch_type="merge")
    await plane.settled()
    assert await sizes(plane) == {"v1": 0, "v2": 2}


@with_deployments
async def test_scaling_in_the_middle_of_a_rollout_is_proportional(plane):
    await created(plane, 10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
    await rolled_out(plane)
    await set_image(plane, "bad")
    assert await sizes(plane) == {"v1": 8, "bad": 5}
    await patched(plane, replicas=15)
    # As upstream's documentation has it: 3 of the 5 new ones go to the larger set, 2 to the other.
    assert await sizes(plane) == {"v1": 11, "bad": 7}


@with_deployments
async def test_a_paused_deployment_is_scaled_but_not_rolled_out(plane):
    await created(plane, 2)
    await rolled_out(plane)
    await patched(plane, paused=True)
    assert (await conditions(plane))["Progressing"][1] == "DeploymentPaused"
    await set_image(plane, "v2")
    await patched(plane, replicas=3)
    assert await sizes(plane) == {"v1": 3}
    await patched(plane, paused=None)
    await rolled_out(plane)
    assert await sizes(plane) == {"v1": 0, "v2": 3}


@with_deployments
async def test_a_rollout_that_hangs_is_said_to_have_failed(plane):
    await created(plane, 1, progressDeadlineSeconds=60)
    await plane.settled(seconds=70)
    await plane.settled()
    status, reason, message = (await conditions(plane))["Progressing"]
    assert (status, reason) == ("False", "ProgressDeadlineExceeded")
    assert message.endswith("has timed out progressing.")
    await rolled_out(plane)
    assert (await conditions(plane))["Progressing"][1] == "NewReplicaSetAvailable"


@with_deployments
async def test_the_history_is_kept_short(plane):
    await created(plane, 1, revisionHistoryLimit=2)
    for number in range(2, 7):
        await rolled_out(plane)
        await set_image(plane, f"v{number}")
    await rolled_out(plane)
    assert await sizes(plane) == {"v4": 0, "v5": 0, "v6": 1}


@with_deployments
async def test_deleting_a_deployment_deletes_all_below_it(plane):
    await created(plane, 3)
    await plane.client.delete(DEPLOYMENTS, "default", "web", propagation="Foreground")
    await plane.settled(seconds=5)
    for resource in (DEPLOYMENTS, REPLICA_SETS, PODS):
        assert (await plane.client.list(resource, "default")).items == []


@with_deployments
async def test_a_taken_name_is_a_collision_and_another_hash_is_tried(plane):
    await created(plane, 1)
    [taken] = (await plane.client.list(REPLICA_SETS, "default")).items
    await plane.client.delete(DEPLOYMENTS, "default", "web", propagation="Orphan")
    await plane.settled(seconds=1)
    patch = {"metadata": {"labels": {"app": "stranger"}}}
    name = taken["metadata"]["name"]
    await plane.client.patch(REPLICA_SETS, "default", name, patch, patch_type="merge")
    await created(plane, 1)
    await plane.settled(seconds=1)
    assert (await shown(plane))["status"]["collisionCount"] == 1
    listed = (await plane.client.list(REPLICA_SETS, "default")).items
    assert len(listed) == 2


@with_deployments
async def test_a_quiet_deployment_is_left_alone(plane):
    await created(plane, 3)
    await rolled_out(plane)
    before = plane.store.revision
    await plane.settled(seconds=3600)
    assert plane.store.revision == before or plane.store.revision - before <= 60  # events expire


def test_a_set_whose_making_nobody_heard_of_is_no_collision():
    async def inside():
        clock = virtual_time.LoopClock()
        faults = Faults(clock)
        plane = ControlPlane(
            lambda: [deployment_controller(), replicaset_controller()],
            around=lambda client: FaultyClient(client, faults),
        )
        async with plane:
            await plane.settled()
            faults.writes.append(Fate.UNANSWERED)
            faults.silences[REPLICA_SETS.group_resource] = clock.monotonic() + 5.0
            await created(plane, 2)
            await plane.settled(seconds=10)
            await plane.settled()
            assert await sizes(plane) == {"v1": 2}
            assert len((await plane.client.list(REPLICA_SETS, "default")).items) == 1
            assert "collisionCount" not in (await shown(plane))["status"]

    virtual_time.run(inside())
