from sampan.api.resources import POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from sampan.testing.worlds.control_plane import story

with_budgets = story(["disruption-controller", "replicaset-controller"])


async def set_up(plane, replicas, **spec):
    selector = {"matchLabels": {"app": "web"}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": selector, **spec},
    }
    await plane.client.create(REPLICA_SETS, replica_set)
    await plane.client.create(POD_DISRUPTION_BUDGETS, budget)
    await plane.settled()


async def make_ready(plane, most=100):
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": plane.time_text()}
    patch = {"status": {"phase": "Running", "conditions": [ready]}}
    for pod in (await plane.client.list(PODS, "default")).items[:most]:
        name = pod["metadata"]["name"]
        await plane.client.patch(PODS, "default", name, patch, subresource="status")
    await plane.settled()


async def status(plane):
    budget = await plane.client.get(POD_DISRUPTION_BUDGETS, "default", "web")
    found = budget["status"]
    fields = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    return tuple(found[field] for field in fields)


async def reason(plane):
    budget = await plane.client.get(POD_DISRUPTION_BUDGETS, "default", "web")
    return budget["status"]["conditions"][0]["reason"]


@with_budgets
async def test_at_most_so_many_may_be_missing(plane):
    await set_up(plane, 4, maxUnavailable=1)
    assert await status(plane) == (4, 0, 3, 0)
    assert await reason(plane) == "InsufficientPods"
    await make_ready(plane)
    assert await status(plane) == (4, 4, 3, 1)
    assert await reason(plane) == "SufficientPods"


@with_budgets
async def test_at_least_so_many_must_be_there(plane):
    await set_up(plane, 3, minAvailable=2)
    await make_ready(plane)
    assert await status(plane) == (3, 3, 2, 1)


@with_budgets
async def test_percentages_are_of_what_the_controllers_want(plane):
    await set_up(plane, 5, minAvailable="50%")
    await make_ready(plane, most=4)
    assert await status(plane) == (5, 4, 3, 1)
    await plane.client.patch(
        REPLICA_SETS, "default", "web", {"spec": {"replicas": 10}}, patch_type="merge"
    )
    await plane.settled()
    assert await status(plane) == (10, 4, 5, 0)


@with_budgets
async def test_a_pod_of_an_unknown_controller_allows_nothing(plane):
    await set_up(plane, 1, maxUnavailable=1)
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "stranger",
            "namespace": "default",
            "labels": {"app": "web"},
            "ownerReferences": [
                {
                    "apiVersion": "example.com/v1",
                    "kind": "Widget",
                    "name": "w",
                    "uid": "1",
                    "controller": True,
                }
            ],
        },
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await plane.client.create(PODS, stranger)
    await plane.settled()
    assert await reason(plane) == "SyncFailed"
    assert (await status(plane))[3] == 0


@with_budgets
async def test_a_mark_that_led_to_nothing_is_taken_back(plane):
    await set_up(plane, 1, minAvailable=1)
    [pod] = (await plane.client.list(PODS, "default")).items
    name = pod["metadata"]["name"]
    mark = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": plane.time_text(),
    }
    patch = {"status": {"conditions": [mark]}}
    await plane.client.patch(PODS, "default", name, patch, subresource="status")
    await plane.settled(seconds=130)
    await plane.settled()
    pod = await plane.client.get(PODS, "default", name)
    assert pod["status"]["conditions"][0]["status"] == "False"
