from sampan.api.objects import copy_of
from sampan.api.resources import (
    LEASES,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from sampan.testing.worlds.control_plane import story

NAMESPACE = "kube-node-lease"
LATER = "2026-01-01T00:00:20.000000Z"


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


POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "leases"},
    "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"],
            "operations": ["UPDATE"], "resources": ["leases"],
        }]},
        "validations": [{"expression": "true"}],
    },
}  # fmt: skip
WEBHOOKS = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "leases"},
    "webhooks": [],
}


@story([])
async def test_where_somebody_has_a_say_all_go_the_ordinary_way(plane):
    await leases(plane, "a")
    for resource, obj in (
        (VALIDATING_ADMISSION_POLICIES, POLICY),
        (VALIDATING_WEBHOOK_CONFIGURATIONS, WEBHOOKS),
    ):
        assert list(await plane.server.renew_leases({"a": LATER})) == []
        await plane.client.create(resource, obj)
        assert list(await plane.server.renew_leases({"a": LATER})) == ["a"]
        await plane.client.delete(resource, "", "leases")
