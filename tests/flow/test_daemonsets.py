from sampan.api.resources import (
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
)
from tests.support.worlds.control_plane import story

with_daemons = story(["daemonset-controller", "garbage-collector-controller"])


async def add_node(plane, name, labels=None, taints=()):
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
    }
    await plane.client.create(NODES, node)
    patch = {"spec": {"taints": list(taints)}}  # without the not-ready taint of a new node
    await plane.client.patch(NODES, "", name, patch, patch_type="merge")
    await plane.settled()


def daemon_set(image="v1", **spec):
    pod = {"containers": [{"name": "c", "image": image}], **spec.pop("pod", {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": pod},
            **spec,
        },
    }


async def create(plane, **spec):
    await plane.client.create(DAEMON_SETS, daemon_set(**spec))
    await plane.settled()


def target(pod):
    required = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    return required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]


async def pods(plane):
    """Node → images of its living pods."""
    found = {}
    for pod in (await plane.client.list(PODS, "default")).items:
        if "deletionTimestamp" not in pod["metadata"]:
            found.setdefault(target(pod), []).append(pod["spec"]["containers"][0]["image"])
    return found


async def make_ready(plane):
    """What scheduler and kubelets do; returns how many became ready."""
    stamp = plane.time_text()
    made = 0
    for pod in (await plane.client.list(PODS, "default")).items:
        if pod["status"].get("phase") == "Running":
            continue
        made += 1
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp}
        patch = {"status": {"phase": "Running", "conditions": [ready]}}
        await plane.client.patch(
            PODS, "default", pod["metadata"]["name"], patch, subresource="status"
        )
    await plane.settled()
    return made


async def set_image(plane, image):
    containers = [{"name": "c", "image": image}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    await plane.client.patch(DAEMON_SETS, "default", "agent", patch, patch_type="merge")
    await plane.settled()


async def status(plane):
    return (await plane.client.get(DAEMON_SETS, "default", "agent"))["status"]


@with_daemons
async def test_every_node_gets_one_pod_and_new_nodes_too(plane):
    await add_node(plane, "n1")
    await create(plane)
    await add_node(plane, "n2")
    assert await pods(plane) == {"n1": ["v1"], "n2": ["v1"]}
    await make_ready(plane)
    assert await status(plane) == {
        "currentNumberScheduled": 2,
        "desiredNumberScheduled": 2,
        "numberMisscheduled": 0,
        "numberReady": 2,
        "numberAvailable": 2,
        "updatedNumberScheduled": 2,
        "observedGeneration": 1,
    }


@with_daemons
async def test_selectors_and_taints_decide(plane):
    await add_node(plane, "fits", {"disk": "ssd"})
    await add_node(plane, "wrong", {"disk": "hdd"})
    await add_node(plane, "tainted", {"disk": "ssd"}, [{"key": "a", "effect": "NoSchedule"}])
    unready = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    await add_node(plane, "cordoned", {"disk": "ssd"}, [unready])
    await create(plane, pod={"nodeSelector": {"disk": "ssd"}})
    assert set(await pods(plane)) == {"fits", "cordoned"}
    patch = {"metadata": {"labels": {"disk": "hdd"}}}
    await plane.client.patch(NODES, "", "fits", patch, patch_type="merge")
    await plane.settled()
    assert set(await pods(plane)) == {"cordoned"}


@with_daemons
async def test_a_rolling_update_takes_one_node_at_a_time(plane):
    for number in range(3):
        await add_node(plane, f"n{number}")
    await create(plane)
    await make_ready(plane)
    await set_image(plane, "v2")
    steps = 0
    while True:
        found = await pods(plane)
        assert all(len(images) == 1 for images in found.values())
        if not await make_ready(plane):
            break
        steps += 1
    assert await pods(plane) == {f"n{number}": ["v2"] for number in range(3)}
    assert steps == 3
    revisions = (await plane.client.list(CONTROLLER_REVISIONS, "default")).items
    assert sorted(one["revision"] for one in revisions) == [1, 2]
    await set_image(plane, "v1")
    revisions = (await plane.client.list(CONTROLLER_REVISIONS, "default")).items
    assert sorted(one["revision"] for one in revisions) == [2, 3]


@with_daemons
async def test_a_surge_starts_the_new_pod_first(plane):
    for number in range(2):
        await add_node(plane, f"n{number}")
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    await create(plane, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    await make_ready(plane)
    await set_image(plane, "v2")
    assert sorted(map(len, (await pods(plane)).values())) == [1, 2]
    while await make_ready(plane):
        pass
    assert await pods(plane) == {"n0": ["v2"], "n1": ["v2"]}


@with_daemons
async def test_on_delete_waits_for_the_user(plane):
    await add_node(plane, "n1")
    await create(plane, updateStrategy={"type": "OnDelete"})
    await make_ready(plane)
    await set_image(plane, "v2")
    assert await pods(plane) == {"n1": ["v1"]}
    [pod] = (await plane.client.list(PODS, "default")).items
    await plane.client.delete(PODS, "default", pod["metadata"]["name"])
    await plane.settled()
    assert await pods(plane) == {"n1": ["v2"]}


@with_daemons
async def test_a_failed_pod_is_replaced_more_and_more_slowly(plane):
    await add_node(plane, "n1")
    await create(plane)
    for pause in (0, 1, 2, 4):
        [pod] = (await plane.client.list(PODS, "default")).items
        name = pod["metadata"]["name"]
        state = {"terminated": {"exitCode": 1, "finishedAt": plane.time_text()}}
        failed = {
            "phase": "Failed",
            "containerStatuses": [
                {
                    "name": "c",
                    "image": "i",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": state,
                }
            ],
        }
        await plane.client.patch(
            PODS, "default", name, {"status": failed}, patch_type="merge", subresource="status"
        )
        await plane.settled(seconds=pause + 1.5)
        await plane.settled()
        [again] = (await plane.client.list(PODS, "default")).items
        assert again["metadata"]["name"] != name


@with_daemons
async def test_deleting_the_set_deletes_its_pods(plane):
    await add_node(plane, "n1")
    await create(plane)
    await plane.client.delete(DAEMON_SETS, "default", "agent", propagation="Foreground")
    await plane.settled(seconds=5)
    assert (await plane.client.list(PODS, "default")).items == []
    assert (await plane.client.list(DAEMON_SETS, "default")).items == []


@with_daemons
async def test_pods_that_were_orphaned_are_adopted_by_the_next_set(plane):
    await add_node(plane, "a")
    await create(plane)
    [before] = (await plane.client.list(PODS, "default")).items
    await plane.client.delete(DAEMON_SETS, "default", "agent", propagation="Orphan")
    await plane.settled()
    [orphan] = (await plane.client.list(PODS, "default")).items
    assert not orphan["metadata"].get("ownerReferences")
    await create(plane)
    [adopted] = (await plane.client.list(PODS, "default")).items
    assert adopted["metadata"]["uid"] == before["metadata"]["uid"]
    owner = await plane.client.get(DAEMON_SETS, "default", "agent")
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]


SURGE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


@with_daemons
async def test_a_pod_that_does_not_serve_is_replaced_beyond_the_surge(plane):
    for number in range(4):
        await add_node(plane, f"n{number}")
    await create(plane, updateStrategy=SURGE)
    await make_ready(plane)
    listed = (await plane.client.list(PODS, "default")).items
    for pod in listed[:2]:
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": plane.time_text()}
        patch = {"status": {"conditions": [ready]}}
        name = pod["metadata"]["name"]
        await plane.client.patch(PODS, "default", name, patch, subresource="status")
    await plane.settled()
    assert (await status(plane))["numberReady"] == 2
    await set_image(plane, "v2")
    found = await pods(plane)
    for pod in listed[:2]:
        assert found[target(pod)] == ["v2"], "the broken one went as soon as there was another"
    assert sorted(sorted(found[target(pod)]) for pod in listed[2:]) == [["v1"], ["v1", "v2"]]


@with_daemons
async def test_a_pod_counts_as_available_after_its_minimum_time(plane):
    for number in range(2):
        await add_node(plane, f"n{number}")
    await create(plane, minReadySeconds=10)
    await make_ready(plane)
    found = await status(plane)
    assert (found["numberReady"], found["numberUnavailable"]) == (2, 2)
    await plane.settled(seconds=11)
    assert (await status(plane))["numberAvailable"] == 2
    await set_image(plane, "v2")
    await make_ready(plane)
    assert sorted((await pods(plane)).values()) == [["v1"], ["v2"]], "one at a time …"
    await plane.settled(seconds=11)
    await plane.settled()
    assert sorted((await pods(plane)).values()) == [["v2"], ["v2"]], "… each after ten seconds"


@with_daemons
async def test_a_pod_that_has_ended_and_cannot_go_takes_nobodys_place(plane):
    await add_node(plane, "n1")
    await create(plane)
    [pod] = (await plane.client.list(PODS, "default")).items
    name = pod["metadata"]["name"]
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await plane.client.patch(PODS, "default", name, held, patch_type="merge")
    await plane.client.patch(
        PODS, "default", name, {"status": {"phase": "Failed"}}, subresource="status"
    )
    await plane.settled(seconds=2)
    await plane.settled()
    assert len((await plane.client.list(PODS, "default")).items) == 2
    assert await pods(plane) == {"n1": ["v1"]}


async def taint(plane, name, *taints):
    patch = {"spec": {"taints": list(taints)}}
    await plane.client.patch(NODES, "", name, patch, patch_type="merge")
    await plane.settled()


@with_daemons
async def test_a_set_that_was_orphaned_takes_its_revision_and_pods_up_again(plane):
    await add_node(plane, "n1")
    await create(plane)
    await make_ready(plane)
    [before] = (await plane.client.list(PODS, "default")).items
    await plane.client.delete(DAEMON_SETS, "default", "agent", propagation="Orphan")
    await plane.settled()
    await create(plane)
    assert (await status(plane))["numberReady"] == 1
    [after] = (await plane.client.list(PODS, "default")).items
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    [revision] = (await plane.client.list(CONTROLLER_REVISIONS, "default")).items
    assert revision["metadata"]["ownerReferences"][0]["name"] == "agent"


@with_daemons
async def test_a_name_that_another_revision_has_is_passed_over_and_counted(plane):
    await create(plane)
    [revision] = (await plane.client.list(CONTROLLER_REVISIONS, "default")).items
    name = revision["metadata"]["name"]
    await plane.client.delete(DAEMON_SETS, "default", "agent", propagation="Background")
    await plane.settled()
    # The same name, in spite of another template.
    taken = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": name},
        "data": {"spec": {}},
        "revision": 7,
    }
    await plane.client.create(CONTROLLER_REVISIONS, taken, "default")
    await plane.settled()
    await create(plane)
    assert (await status(plane))["collisionCount"] == 1


@with_daemons
async def test_pods_that_cannot_be_made_do_not_keep_others_from_going(plane):
    await add_node(plane, "n1", {"disk": "ssd"})
    await create(plane, pod={"nodeSelector": {"disk": "ssd"}})
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": "1"}},
    }
    await plane.client.create(RESOURCE_QUOTAS, quota, "default")
    used = {"status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}}
    await plane.client.patch(RESOURCE_QUOTAS, "default", "q", used, subresource="status")
    await add_node(plane, "n2", {"disk": "ssd"})
    assert set(await pods(plane)) == {"n1"}
    patch = {"metadata": {"labels": {"disk": "hdd"}}}
    await plane.client.patch(NODES, "", "n1", patch, patch_type="merge")
    await plane.settled(seconds=2)
    assert set(await pods(plane)) == {"n2"}  # there is room now


@with_daemons
async def test_outdated_pods_go_also_where_no_new_one_may_run(plane):
    await add_node(plane, "n1")
    await add_node(plane, "n2")
    await create(plane)
    await make_ready(plane)
    await taint(plane, "n2", {"key": "dedicated", "effect": "NoSchedule"})
    await set_image(plane, "v2")
    for _ in range(3):
        await make_ready(plane)
    assert await pods(plane) == {"n1": ["v2"]}


@with_daemons
async def test_a_pod_that_may_stay_is_nobodys_business(plane):
    await add_node(plane, "n1")
    await create(plane)
    await make_ready(plane)
    before = await status(plane)
    await taint(plane, "n1", {"key": "dedicated", "effect": "NoSchedule"})
    assert await status(plane) == before
    await taint(plane, "n1", {"key": "dedicated", "effect": "NoExecute"})
    assert await pods(plane) == {}


@with_daemons
async def test_daemons_are_tolerant_without_end(plane):
    await add_node(plane, "n1")
    short = {
        "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 30,
    }  # fmt: skip
    await create(plane, pod={"tolerations": [short]})
    [pod] = (await plane.client.list(PODS, "default")).items
    alike = [one for one in pod["spec"]["tolerations"] if one["key"] == short["key"]]
    assert alike == [{key: short[key] for key in ("key", "operator", "effect")}]
