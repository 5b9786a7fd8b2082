"""Node batches: each write is what its node's own request would have stored."""

from sampan.api.objects import copy_of
from sampan.api.resources import (
    LEASES,
    NODES,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from sampan.apiserver.authn.user import component
from sampan.client.inprocess import InProcessClient
from tests.support.worlds.control_plane import story

NAMESPACE = "kube-node-lease"
LATER = "2026-01-01T00:00:20.000000Z"
IMAGES = [{"names": ["registry.example/app:1"], "sizeBytes": 1_000_000}]


def agent(plane, name):
    return InProcessClient(plane.server.as_user(component(f"system:node:{name}")))


def policy(group, resource):
    rule = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": [resource],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "batch"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "true"}],
        },
    }


WEBHOOKS = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "batch"},
    "webhooks": [],
}


async def leases(plane, *names):
    for name in names:
        meta = {"name": name, "namespace": NAMESPACE}
        spec = {
            "holderIdentity": name.removesuffix("-lost"),
            "leaseDurationSeconds": 40,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        }
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
        node = plane.as_component(f"system:node:{name}")
        await node.create(LEASES, {**lease, "spec": spec})


@story([])
async def test_each_lease_is_what_its_nodes_own_patch_would_have_made_it(plane):
    await leases(plane, "a", "b", "c")
    listed = await plane.client.list(LEASES, NAMESPACE)
    before = {obj["metadata"]["name"]: obj for obj in listed.items}
    assert list(await plane.server.renew_leases({"a": LATER, "b": LATER})) == []
    node = plane.as_component("system:node:c")
    patch = {"spec": {"renewTime": LATER}}
    await node.patch(LEASES, NAMESPACE, "c", patch, patch_type="merge")

    seen = {}
    async for event in plane.client.watch(LEASES, NAMESPACE, revision=listed.revision):
        seen[event.object["metadata"]["name"]] = event
        if len(seen) == 3:
            break
    assert {event.type for event in seen.values()} == {"MODIFIED"}
    revisions = {event.object["metadata"]["resourceVersion"] for event in seen.values()}
    assert len(revisions) == 3
    for name, event in seen.items():
        expected, found = copy_of(before[name]), copy_of(event.object)
        expected["spec"]["renewTime"] = LATER
        for obj in (expected, found):
            del obj["metadata"]["resourceVersion"]
            # The patch of another time is noted with that time.
            for entry in obj["metadata"].get("managedFields") or ():
                entry.pop("time", None)
        assert found == expected


@story([])
async def test_what_is_not_the_nodes_to_renew_is_left_to_it(plane):
    await leases(plane, "a", "b-lost")
    times = dict.fromkeys(("a", "b-lost", "never-heard-of"), LATER)
    assert sorted(await plane.server.renew_leases(times)) == ["b-lost", "never-heard-of"]


@story([])
async def test_a_renew_time_that_is_none_is_left_to_the_nodes_own_patch(plane):
    await leases(plane, "a", "b")
    assert list(await plane.server.renew_leases({"a": "soon", "b": LATER})) == ["a"]


@story([])
async def test_where_a_plugin_may_have_a_say_each_lease_is_renewed_by_its_own_patch(plane):
    await leases(plane, "a")
    for resource, obj in (
        (VALIDATING_ADMISSION_POLICIES, policy("coordination.k8s.io", "leases")),
        (VALIDATING_WEBHOOK_CONFIGURATIONS, WEBHOOKS),
    ):
        assert list(await plane.server.renew_leases({"a": LATER})) == []
        await plane.client.create(resource, obj)
        assert list(await plane.server.renew_leases({"a": LATER})) == ["a"]
        await plane.client.delete(resource, "", "batch")


def conditions(time):
    return [
        {"type": name, "status": status, "lastHeartbeatTime": time, "lastTransitionTime": BEFORE}
        for name, status in (("MemoryPressure", "False"), ("Ready", "True"))
    ]


BEFORE = "2020-01-01T00:00:00Z"
THEIRS = {
    "type": "Mood", "status": "True", "lastHeartbeatTime": BEFORE, "lastTransitionTime": BEFORE,
}  # fmt: skip


async def nodes(plane, *names):
    for name in names:
        status = {"conditions": conditions(BEFORE)}
        node = agent(plane, name)
        meta = {"name": name, "labels": {"disk": "ssd"}}
        await node.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}
        )
        patch = {"status": {"conditions": [THEIRS]}}
        await plane.client.patch(NODES, "", name, patch, subresource="status")


@story([])
async def test_each_node_is_what_its_own_patch_would_have_made_it(plane):
    await nodes(plane, "a", "b", "c", "d")
    listed = await plane.client.list(NODES)
    assert list(await plane.server.report_nodes({"a": IMAGES, "b": None})) == []
    now = (await plane.client.get(NODES, "", "a"))["status"]["conditions"][1]["lastHeartbeatTime"]
    assert now > BEFORE
    for name, images in (("c", {"images": IMAGES}), ("d", {})):
        patch = {"status": {"conditions": conditions(now), **images}}
        await agent(plane, name).patch(NODES, "", name, patch, subresource="status")
    seen = {}
    async for event in plane.client.watch(NODES, revision=listed.revision):
        seen[event.object["metadata"]["name"]] = copy_of(event.object)
        assert event.type == "MODIFIED"
        if len(seen) == 4:
            break
    assert len({obj["metadata"].pop("resourceVersion") for obj in seen.values()}) == 4
    for obj in seen.values():
        for field in ("uid", "creationTimestamp"):
            del obj["metadata"][field]
        for entry in obj["metadata"]["managedFields"]:
            entry.pop("time", None)
        assert THEIRS in obj["status"]["conditions"], "it is nothing that the node keeps"
    for reported, patched in (("a", "c"), ("b", "d")):
        expected = seen[patched]
        expected["metadata"]["name"] = reported
        assert seen[reported] == expected
    managers = {entry["manager"] for entry in seen["a"]["metadata"]["managedFields"]}
    assert managers == {"admin", "kubelet"}


@story([])
async def test_as_whom_it_is_noted_the_caller_says(plane):
    await nodes(plane, "a")
    assert list(await plane.server.report_nodes({"a": IMAGES}, "sampan-kubelet")) == []
    entries = (await plane.client.get(NODES, "", "a"))["metadata"]["managedFields"]
    of_images = [
        entry["manager"] for entry in entries if "f:images" in entry["fieldsV1"].get("f:status", {})
    ]
    assert of_images == ["sampan-kubelet"]


@story([])
async def test_who_is_not_there_is_left_to_itself(plane):
    await nodes(plane, "a")
    assert list(await plane.server.report_nodes({"a": None, "gone": IMAGES})) == ["gone"]


@story([])
async def test_images_of_a_wrong_type_are_left_to_the_nodes_own_patch(plane):
    await nodes(plane, "a")
    assert list(await plane.server.report_nodes({"a": [{"sizeBytes": "large"}]})) == ["a"]
    assert "images" not in (await plane.client.get(NODES, "", "a"))["status"]


@story([])
async def test_where_a_plugin_may_have_a_say_each_node_patches_its_status_itself(plane):
    await nodes(plane, "a")
    for resource, obj in (
        (VALIDATING_ADMISSION_POLICIES, policy("", "nodes/status")),
        (VALIDATING_WEBHOOK_CONFIGURATIONS, WEBHOOKS),
    ):
        assert list(await plane.server.report_nodes({"a": None})) == []
        await plane.client.create(resource, obj)
        assert list(await plane.server.report_nodes({"a": None})) == ["a"]
        await plane.client.delete(resource, "", "batch")


def node(name, address="172.16.0.1", ready="True"):
    condition = {"type": "Ready", "status": ready, "reason": "KubeletReady"}
    addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
    capacity = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "disk": "ssd"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "addresses": addresses, "capacity": capacity, "allocatable": capacity,
            "conditions": [condition], "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }  # fmt: skip


async def register(plane, name, address="172.16.0.1"):
    """As an agent does."""
    client = agent(plane, name)
    made = await client.create(NODES, node(name, address))
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": made["metadata"]["uid"]}
    meta = {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]}
    spec = {
        "holderIdentity": name,
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
    await client.create(LEASES, {**lease, "spec": spec}, NAMESPACE)


def timeless(value):
    """Without what differs between two creates of the same."""
    if isinstance(value, dict):
        away = ("uid", "resourceVersion")
        return {
            "uid" if key.startswith("k:") else key: timeless(item)
            for key, item in value.items()
            if key not in away and not key.lower().endswith("time") and key != "creationTimestamp"
        }
    return [timeless(item) for item in value] if isinstance(value, list) else value


@story(["node-lifecycle-controller"])
async def test_each_is_what_its_own_registration_would_have_made_it(plane):
    await register(plane, "a")
    await register(plane, "c", "172.16.0.3")
    await plane.settled()
    listed = await plane.client.list(NODES)
    left = await plane.server.register_nodes("a", {"b": ["172.16.0.2"]})
    assert list(left) == []
    async for event in plane.client.watch(NODES, revision=listed.revision):
        assert (event.type, event.object["metadata"]["name"]) == ("ADDED", "b")
        break
    b, c = [await plane.client.get(NODES, "", name) for name in ("b", "c")]
    expected = copy_of(c)
    expected["metadata"]["name"] = expected["metadata"]["labels"]["kubernetes.io/hostname"] = "b"
    expected["status"]["addresses"] = node("b", "172.16.0.2")["status"]["addresses"]
    assert timeless(b) == timeless(expected)
    assert "taints" not in b["spec"], "the controller has found nodes like this one ready"
    leases = [await plane.client.get(LEASES, NAMESPACE, name) for name in ("b", "c")]
    assert leases[0]["metadata"]["ownerReferences"][0]["uid"] == b["metadata"]["uid"]
    assert f'k:{{"uid":"{b["metadata"]["uid"]}"}}' in str(leases[0]["metadata"]["managedFields"])
    expected = copy_of(leases[1])
    expected["metadata"]["name"] = expected["spec"]["holderIdentity"] = "b"
    expected["metadata"]["ownerReferences"][0]["name"] = "b"
    assert timeless(leases[0]) == timeless(expected)
    uids = {obj["metadata"]["uid"] for obj in (b, c, *leases)}
    assert len(uids) == 4


@story([])
async def test_one_that_is_there_or_would_not_be_valid_is_left_to_itself(plane):
    await register(plane, "a")
    await register(plane, "c", "172.16.0.3")
    before = await plane.client.get(NODES, "", "c")
    wanted = {"c": ["10.0.0.1"], "Not.A.Label": ["10.0.0.2"], "d": ["10.0.0.3"],
              "twice": ["10.0.0.4", "10.0.0.4"], "number": [7]}  # fmt: skip
    left = await plane.server.register_nodes("a", wanted)
    assert sorted(left) == ["Not.A.Label", "c", "number", "twice"]
    assert await plane.client.get(NODES, "", "c") == before
    assert sorted(await plane.server.register_nodes("nobody", wanted)) == sorted(wanted)


@story([])
async def test_what_somebody_else_wrote_into_a_node_is_not_passed_on(plane):
    """A node may not give itself such a label; one like it would have had it."""
    await register(plane, "a")
    label = {"metadata": {"labels": {"node-restriction.kubernetes.io/secret": "yes"}}}
    await plane.client.patch(NODES, "", "a", label, patch_type="merge")
    assert list(await plane.server.register_nodes("a", {"b": ["10.0.0.1"]})) == ["b"]


@story([])
async def test_where_a_webhook_may_have_something_to_say_all_go_the_ordinary_way(plane):
    await register(plane, "a")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["nodes"]}  # fmt: skip
    hook = {
        "name": "nodes.example.com", "rules": [rule], "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"},
    }  # fmt: skip
    webhooks = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "nodes"},
        "webhooks": [hook],
    }
    await plane.client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, webhooks)
    assert list(await plane.server.register_nodes("a", {"b": ["10.0.0.1"]})) == ["b"]
