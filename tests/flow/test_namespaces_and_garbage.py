import asyncio

from sampan.api.errors import NotFound
from sampan.api.resources import (
    API_SERVICES,
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from tests.support.worlds.control_plane import story

BASIC = [
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "garbage-collector-controller",
]


basic = story(BASIC)


def named(kind, name, namespace="", api_version="v1", **rest):
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    meta |= rest.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}


def config_map(name, *owners, namespace="default", **meta):
    return named("ConfigMap", name, namespace, metadata={"ownerReferences": list(owners), **meta})


def owned_by(owner, block=False, **changes):
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block,
        **changes,
    }


async def exists(plane, resource, namespace, name):
    try:
        await plane.client.get(resource, namespace, name)
    except NotFound:
        return False
    return True


async def names(plane, resource, namespace="default"):
    listed = await plane.client.list(resource, namespace)
    return {one["metadata"]["name"] for one in listed.items}


@basic
async def test_a_new_namespace_has_its_service_account_and_bundle(plane):
    await plane.client.create(NAMESPACES, named("Namespace", "ns"))
    await plane.settled()
    assert await exists(plane, SERVICE_ACCOUNTS, "ns", "default")
    bundle = await plane.client.get(CONFIG_MAPS, "ns", "kube-root-ca.crt")
    assert bundle["data"] == {"ca.crt": "PEM"}


@basic
async def test_what_every_namespace_has_comes_back_when_it_is_deleted_or_changed(plane):
    await plane.client.create(NAMESPACES, named("Namespace", "ns"))
    await plane.settled()
    await plane.client.delete(SERVICE_ACCOUNTS, "ns", "default")
    await plane.client.delete(CONFIG_MAPS, "ns", "kube-root-ca.crt")
    await plane.settled()
    assert await exists(plane, SERVICE_ACCOUNTS, "ns", "default")
    patch = {"data": {"ca.crt": "forged", "more": "x"}}
    await plane.client.patch(CONFIG_MAPS, "ns", "kube-root-ca.crt", patch, patch_type="merge")
    await plane.settled()
    bundle = await plane.client.get(CONFIG_MAPS, "ns", "kube-root-ca.crt")
    assert bundle["data"] == {"ca.crt": "PEM"}


@basic
async def test_a_deleted_namespace_takes_everything_with_it(plane):
    await plane.client.create(NAMESPACES, named("Namespace", "ns"))
    for number in range(20):
        await plane.client.create(CONFIG_MAPS, config_map(f"c{number}", namespace="ns"))
        await plane.client.create(SECRETS, named("Secret", f"s{number}", "ns"))
    await plane.client.delete(NAMESPACES, "", "ns")
    await plane.settled()
    assert not await exists(plane, NAMESPACES, "", "ns")
    assert await names(plane, CONFIG_MAPS, "ns") == set()
    assert await names(plane, SECRETS, "ns") == set()
    assert await names(plane, SERVICE_ACCOUNTS, "ns") == set()


@basic
async def test_a_namespace_waits_for_finalizers_and_says_so(plane):
    await plane.client.create(NAMESPACES, named("Namespace", "ns"))
    held = config_map("held", namespace="ns", finalizers=["example.com/held"])
    await plane.client.create(CONFIG_MAPS, held)
    await plane.client.delete(NAMESPACES, "", "ns")
    await plane.settled()
    namespace = await plane.client.get(NAMESPACES, "", "ns")
    assert namespace["status"]["phase"] == "Terminating"
    stated = {one["type"]: one for one in namespace["status"]["conditions"]}
    assert stated["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: configmaps. has 1 resource instances"
    )
    assert stated["NamespaceFinalizersRemaining"]["status"] == "True"
    patch = {"metadata": {"finalizers": []}}
    await plane.client.patch(CONFIG_MAPS, "ns", "held", patch, patch_type="merge")
    await plane.settled()
    assert not await exists(plane, NAMESPACES, "", "ns")


@basic
async def test_a_terminating_namespace_and_a_new_one_of_the_same_name(plane):
    for _ in range(3):
        await plane.client.create(NAMESPACES, named("Namespace", "ns"))
        await plane.settled()
        await plane.client.delete(NAMESPACES, "", "ns")
        await plane.settled()
        assert not await exists(plane, NAMESPACES, "", "ns")


@basic
async def test_dependents_follow_their_owner_in_the_background(plane):
    owner = await plane.client.create(CONFIG_MAPS, config_map("owner"))
    child = await plane.client.create(CONFIG_MAPS, config_map("child", owned_by(owner)))
    await plane.client.create(
        SECRETS,
        named("Secret", "grandchild", "default", metadata={"ownerReferences": [owned_by(child)]}),
    )
    await plane.settled()
    assert await exists(plane, CONFIG_MAPS, "default", "child")
    await plane.client.delete(CONFIG_MAPS, "default", "owner", propagation="Background")
    await plane.settled()
    assert await names(plane, CONFIG_MAPS) == {"kube-root-ca.crt"}
    assert await names(plane, SECRETS) == set()


@basic
async def test_in_the_foreground_the_owner_goes_last(plane):
    owner = await plane.client.create(CONFIG_MAPS, config_map("owner"))
    held = config_map("child", owned_by(owner, block=True), finalizers=["example.com/held"])
    await plane.client.create(CONFIG_MAPS, held)
    await plane.settled()
    await plane.client.delete(CONFIG_MAPS, "default", "owner", propagation="Foreground")
    await plane.settled()
    assert await exists(plane, CONFIG_MAPS, "default", "owner")
    child = await plane.client.get(CONFIG_MAPS, "default", "child")
    assert child["metadata"]["deletionTimestamp"]
    patch = {"metadata": {"finalizers": []}}
    await plane.client.patch(CONFIG_MAPS, "default", "child", patch, patch_type="merge")
    await plane.settled()
    assert await names(plane, CONFIG_MAPS) == {"kube-root-ca.crt"}


@basic
async def test_orphans_stay_and_lose_the_reference(plane):
    owner = await plane.client.create(CONFIG_MAPS, config_map("owner"))
    other = await plane.client.create(CONFIG_MAPS, config_map("other"))
    await plane.client.create(CONFIG_MAPS, config_map("child", owned_by(owner), owned_by(other)))
    await plane.settled()
    await plane.client.delete(CONFIG_MAPS, "default", "owner", propagation="Orphan")
    await plane.settled()
    assert not await exists(plane, CONFIG_MAPS, "default", "owner")
    child = await plane.client.get(CONFIG_MAPS, "default", "child")
    assert [one["name"] for one in child["metadata"]["ownerReferences"]] == ["other"]


@basic
async def test_an_object_born_with_an_owner_that_never_was_goes(plane):
    owner = config_map("owner")
    owner["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    await plane.client.create(CONFIG_MAPS, config_map("child", owned_by(owner)))
    await plane.settled()
    assert not await exists(plane, CONFIG_MAPS, "default", "child")


@basic
async def test_an_owner_in_another_namespace_is_no_owner(plane):
    await plane.client.create(NAMESPACES, named("Namespace", "ns"))
    owner = await plane.client.create(CONFIG_MAPS, config_map("owner", namespace="ns"))
    await plane.client.create(CONFIG_MAPS, config_map("child", owned_by(owner)))
    await plane.settled()
    assert not await exists(plane, CONFIG_MAPS, "default", "child")
    events = await plane.client.list(EVENTS, "default")
    assert [one["reason"] for one in events.items] == ["OwnerRefInvalidNamespace"]


@basic
async def test_a_cluster_wide_owner_owns_in_every_namespace(plane):
    node = await plane.client.create(NODES, named("Node", "n1"))
    await plane.client.create(CONFIG_MAPS, config_map("child", owned_by(node)))
    await plane.settled()
    assert await exists(plane, CONFIG_MAPS, "default", "child")
    await plane.client.delete(NODES, "", "n1")
    await plane.settled()
    assert not await exists(plane, CONFIG_MAPS, "default", "child")


@basic
async def test_garbage_that_was_made_while_the_controllers_were_away_is_found(plane):
    owner = await plane.client.create(CONFIG_MAPS, config_map("owner"))
    await plane.client.create(CONFIG_MAPS, config_map("child", owned_by(owner)))
    await plane.client.create(NAMESPACES, named("Namespace", "ns"))
    await plane.settled()
    await plane.stop_controllers()
    await plane.client.delete(CONFIG_MAPS, "default", "owner", propagation="Background")
    await plane.client.delete(NAMESPACES, "", "ns")
    await plane.start_controllers()
    await plane.settled()
    assert not await exists(plane, CONFIG_MAPS, "default", "child")
    assert not await exists(plane, NAMESPACES, "", "ns")


@basic
async def test_an_idle_cluster_is_idle(plane):
    await plane.settled()
    before = plane.store.revision
    await asyncio.sleep(600)
    assert plane.store.revision == before


API_SERVICE = {
    "metadata": {"name": "v1.tea.example.com"},
    "spec": {
        "group": "tea.example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "service": {"namespace": "default", "name": "absent"},
    },
}


@basic
async def test_an_unavailable_api_service_keeps_namespaces_and_says_so(plane):
    """[A6] What its server may hold in a namespace nobody knows; everything else goes."""
    await plane.client.create(API_SERVICES, API_SERVICE)
    await plane.client.create(NAMESPACES, named("Namespace", "team"))
    await plane.client.create(CONFIG_MAPS, config_map("a", namespace="team"))
    await asyncio.sleep(5)
    await plane.client.delete(NAMESPACES, "", "team")
    await asyncio.sleep(5)
    assert await names(plane, CONFIG_MAPS, "team") == set()
    team = await plane.client.get(NAMESPACES, "", "team")
    [condition] = [
        item
        for item in team["status"]["conditions"]
        if item["type"] == "NamespaceDeletionDiscoveryFailure"
    ]
    assert (condition["status"], condition["reason"]) == ("True", "DiscoveryFailed")
    assert "tea.example.com/v1: stale GroupVersion discovery" in condition["message"]
    await plane.client.delete(API_SERVICES, "", "v1.tea.example.com")
    await asyncio.sleep(5)
    assert not await exists(plane, NAMESPACES, "", "team")
