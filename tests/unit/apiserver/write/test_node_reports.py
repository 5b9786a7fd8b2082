"""Many nodes tell that they are well, each as its own patch would have told it."""

from sampan.api.objects import copy_of
from sampan.api.resources import (
    NODES,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from sampan.apiserver.authn.user import component
from sampan.client.inprocess import InProcessClient
from sampan.testing.worlds.control_plane import story

IMAGES = [{"names": ["registry.example/app:1"], "sizeBytes": 1_000_000}]


def conditions(time):
    return [
        {"type": name, "status": status, "lastHeartbeatTime": time, "lastTransitionTime": BEFORE}
        for name, status in (("MemoryPressure", "False"), ("Ready", "True"))
    ]


BEFORE = "2020-01-01T00:00:00Z"
THEIRS = {
    "type": "Mood", "status": "True", "lastHeartbeatTime": BEFORE, "lastTransitionTime": BEFORE,
}  # fmt: skip


def agent(plane, name):
    return InProcessClient(plane.server.as_user(component(f"system:node:{name}")))


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


def policy(operations):
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": operations,
        "resources": ["nodes/status"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "nodes"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "true"}],
        },
    }


WEBHOOKS = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "nodes"},
    "webhooks": [],
}


@story([])
async def test_where_somebody_has_a_say_all_go_the_ordinary_way(plane):
    await nodes(plane, "a")
    for resource, obj in (
        (VALIDATING_ADMISSION_POLICIES, policy(["UPDATE"])),
        (VALIDATING_WEBHOOK_CONFIGURATIONS, WEBHOOKS),
    ):
        assert list(await plane.server.report_nodes({"a": None})) == []
        await plane.client.create(resource, obj)
        assert list(await plane.server.report_nodes({"a": None})) == ["a"]
        await plane.client.delete(resource, "", "nodes")
