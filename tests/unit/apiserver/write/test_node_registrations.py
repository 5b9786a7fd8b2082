from sampan.api.objects import copy_of
from sampan.api.resources import LEASES, NODES, VALIDATING_WEBHOOK_CONFIGURATIONS
from sampan.apiserver.authn.user import component
from sampan.client.inprocess import InProcessClient
from sampan.testing.worlds.control_plane import story

NAMESPACE = "kube-node-lease"


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
    client = InProcessClient(plane.server.as_user(component(f"system:node:{name}")))
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
async def test_one_that_is_there_or_has_no_plain_name_is_left_to_itself(plane):
    await register(plane, "a")
    await register(plane, "c", "172.16.0.3")
    before = await plane.client.get(NODES, "", "c")
    wanted = {"c": ["10.0.0.1"], "Not.A.Label": ["10.0.0.2"], "d": ["10.0.0.3"]}
    left = await plane.server.register_nodes("a", wanted)
    assert sorted(left) == ["Not.A.Label", "c"]
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
