from sampan.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    Resource,
)
from tests.support.worlds.control_plane import story

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


WEBS = Resource("example.com", "v1", "Web", "webs")
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


async def define_webs(plane, **subresources):
    fields = {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
        "subresources": subresources,
    }
    names = {"plural": "webs", "singular": "web", "kind": "Web", "listKind": "WebList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "webs.example.com"},
        "spec": spec,
    }
    await plane.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    await plane.settled(seconds=1)


async def web_with_pods(plane, count):
    web = {"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "w"}}
    made = await plane.client.create(WEBS, {**web, "spec": {"replicas": count}}, "default")
    owner = {
        "apiVersion": "example.com/v1", "kind": "Web", "name": "w",
        "uid": made["metadata"]["uid"], "controller": True,
    }  # fmt: skip
    for number in range(count):
        meta = {"name": f"w-{number}", "labels": {"app": "web"}, "ownerReferences": [owner]}
        spec = {"containers": [{"name": "c", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        await plane.client.create(PODS, pod, "default")
    await make_ready(plane)


async def guard(plane, name="web", **spec):
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }
    await plane.client.create(POD_DISRUPTION_BUDGETS, budget, "default")
    await plane.settled()


@with_budgets
async def test_pods_of_a_custom_kind_are_counted_by_its_scale(plane):
    await define_webs(plane, scale=_SCALE)
    await web_with_pods(plane, 4)
    await guard(plane, maxUnavailable="25%")
    assert await status(plane) == (4, 4, 3, 1)


@with_budgets
async def test_of_a_kind_without_a_scale_nobody_knows_how_many_there_should_be(plane):
    await define_webs(plane)
    await web_with_pods(plane, 2)
    await guard(plane, maxUnavailable=1)
    budget = await plane.client.get(POD_DISRUPTION_BUDGETS, "default", "web")
    [condition] = budget["status"]["conditions"]
    assert (condition["reason"], budget["status"]["disruptionsAllowed"]) == ("SyncFailed", 0)
    assert condition["message"] == "webs.example.com does not implement the scale subresource"


@with_budgets
async def test_a_pod_with_two_budgets_is_told_of(plane):
    await set_up(plane, 1, minAvailable=1)
    await guard(plane, "more", minAvailable=0)
    await make_ready(plane)
    events = (await plane.client.list(EVENTS, "default")).items
    assert "MultiplePodDisruptionBudgets" in {event["reason"] for event in events}
