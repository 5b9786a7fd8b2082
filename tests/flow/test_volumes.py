"""Claims find volumes, and volumes are made for them."""

from sampan.api.errors import NotFound
from sampan.api.resources import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
)
from tests.support.worlds.control_plane import story

with_binder = story(
    [
        "persistentvolume-binder-controller",
        "persistentvolume-expander-controller",
        "pvc-protection",
        "pv-protection",
        "local-provisioner",
    ]
)


def claim(name="data", size="1Gi", **spec):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": "",
            **spec,
        },
    }


def volume(name, size="1Gi", labels=None, **spec):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": f"/tmp/{name}"},
            **spec,
        },
    }


async def created(plane, *objects):
    for one in objects:
        kinds = {
            "PersistentVolume": PERSISTENT_VOLUMES,
            "PersistentVolumeClaim": PERSISTENT_VOLUME_CLAIMS,
            "StorageClass": STORAGE_CLASSES,
            "Node": NODES,
        }
        await plane.client.create(kinds[one["kind"]], one)
        await plane.settled()


async def get_claim(plane, name="data"):
    return await plane.client.get(PERSISTENT_VOLUME_CLAIMS, "default", name)


async def get_volume(plane, name):
    return await plane.client.get(PERSISTENT_VOLUMES, "", name)


async def phases(plane):
    claims = (await plane.client.list(PERSISTENT_VOLUME_CLAIMS)).items
    volumes = (await plane.client.list(PERSISTENT_VOLUMES)).items
    return {
        one["metadata"]["name"]: one["status"]["phase"]
        for one in (*claims, *volumes)
        if "deletionTimestamp" not in one["metadata"]
    }


async def reasons(plane):
    return [one["reason"] for one in (await plane.client.list(EVENTS)).items]


@with_binder
async def test_a_claim_gets_the_smallest_volume_that_is_large_enough(plane):
    await created(plane, volume("small", "1Gi"), volume("large", "9Gi"), volume("middle", "3Gi"))
    assert await phases(plane) == dict.fromkeys(("small", "large", "middle"), "Available")
    await created(plane, claim(size="2Gi"))
    bound = await get_claim(plane)
    assert bound["spec"]["volumeName"] == "middle"
    assert bound["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "3Gi"},
    }
    marks = bound["metadata"]["annotations"]
    assert marks["pv.kubernetes.io/bind-completed"] == "yes"
    assert marks["pv.kubernetes.io/bound-by-controller"] == "yes"
    reference = (await get_volume(plane, "middle"))["spec"]["claimRef"]
    assert reference["uid"] == bound["metadata"]["uid"]
    assert (await phases(plane))["middle"] == "Bound"


@with_binder
async def test_a_claim_waits_for_a_volume_and_takes_it_when_it_comes(plane):
    await created(plane, claim())
    assert await phases(plane) == {"data": "Pending"}
    assert await reasons(plane) == ["FailedBinding"]
    await created(plane, volume("late"))
    assert await phases(plane) == {"data": "Bound", "late": "Bound"}


@with_binder
async def test_modes_classes_and_selectors_must_match(plane):
    await created(
        plane,
        volume("mode", accessModes=["ReadOnlyMany"]),
        volume("class", storageClassName="fast"),
        volume("label", labels={"disk": "hdd"}),
        claim(selector={"matchLabels": {"disk": "ssd"}}),
    )
    assert (await phases(plane))["data"] == "Pending"
    await created(plane, volume("right", labels={"disk": "ssd"}))
    assert (await get_claim(plane))["spec"]["volumeName"] == "right"


@with_binder
async def test_two_claims_never_get_one_volume(plane):
    await created(plane, volume("one"))
    await plane.client.create(PERSISTENT_VOLUME_CLAIMS, claim("a"))
    await plane.client.create(PERSISTENT_VOLUME_CLAIMS, claim("b"))
    await plane.settled()
    found = await phases(plane)
    assert sorted((found["a"], found["b"])) == ["Bound", "Pending"]


@with_binder
async def test_a_volume_reserved_by_name_goes_to_that_claim_only(plane):
    await created(
        plane,
        volume("mine", claimRef={"namespace": "default", "name": "data"}),
        claim("other"),
    )
    assert await phases(plane) == {"mine": "Available", "other": "Pending"}
    await created(plane, claim("data"))
    assert await phases(plane) == {"mine": "Bound", "other": "Pending", "data": "Bound"}


@with_binder
async def test_a_claim_may_name_its_volume(plane):
    await created(plane, volume("a"), volume("b"), claim(volumeName="b"))
    assert await phases(plane) == {"a": "Available", "b": "Bound", "data": "Bound"}
    await created(plane, claim("second", volumeName="b"), claim("third", "5Gi", volumeName="a"))
    found = await phases(plane)
    assert (found["second"], found["third"]) == ("Pending", "Pending")
    assert {"FailedBinding", "VolumeMismatch"} <= set(await reasons(plane))


@with_binder
async def test_a_retained_volume_is_released_and_not_given_away_again(plane):
    await created(plane, volume("kept"), claim())
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    await plane.settled()
    assert await phases(plane) == {"kept": "Released"}
    await created(plane, claim())
    assert await phases(plane) == {"kept": "Released", "data": "Pending"}


@with_binder
async def test_a_volume_of_a_driver_is_the_drivers_to_delete(plane):
    made = volume("v", persistentVolumeReclaimPolicy="Delete")
    del made["spec"]["hostPath"]
    made["spec"]["csi"] = {"driver": "csi.example.com", "volumeHandle": "h"}
    await created(plane, made, claim())
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    await plane.settled()
    assert await phases(plane) == {"v": "Released"}
    assert "VolumeFailedDelete" not in await reasons(plane)


@with_binder
async def test_a_volume_that_nobody_can_delete_fails(plane):
    await created(plane, volume("v", persistentVolumeReclaimPolicy="Delete"), claim())
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    await plane.settled()
    assert await phases(plane) == {"v": "Failed"}
    assert "VolumeFailedDelete" in await reasons(plane)


@with_binder
async def test_a_claim_whose_volume_is_gone_is_lost(plane):
    await created(plane, volume("v"), claim())
    gone = {"metadata": {"finalizers": None}}
    await plane.client.delete(PERSISTENT_VOLUMES, "", "v")
    await plane.client.patch(PERSISTENT_VOLUMES, "", "v", gone, patch_type="merge")
    await plane.settled()
    assert await phases(plane) == {"data": "Lost"}
    assert "ClaimLost" in await reasons(plane)


@with_binder
async def test_claims_in_use_and_bound_volumes_are_protected(plane):
    await created(plane, volume("v"), claim())
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "user", "namespace": "default"},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    }
    await plane.client.create(PODS, pod)
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    await plane.client.delete(PERSISTENT_VOLUMES, "", "v")
    await plane.settled()
    assert (await get_claim(plane))["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert (await get_volume(plane, "v"))["metadata"]["finalizers"] == [
        "kubernetes.io/pv-protection"
    ]
    await plane.client.delete(PODS, "default", "user", grace_seconds=0)
    await plane.settled()
    assert (await plane.client.list(PERSISTENT_VOLUME_CLAIMS)).items == []
    assert (await plane.client.list(PERSISTENT_VOLUMES)).items == []


def node(name, **annotations):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": annotations,
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


@with_binder
async def test_the_class_standard_is_there_and_the_default(plane):
    found = await plane.client.get(STORAGE_CLASSES, "", "standard")
    assert found["provisioner"] == "sampan.io/local"
    assert found["metadata"]["annotations"] == {
        "storageclass.kubernetes.io/is-default-class": "true"
    }
    await plane.client.delete(STORAGE_CLASSES, "", "standard")
    await plane.settled()
    assert (await plane.client.list(STORAGE_CLASSES)).items == []


@with_binder
async def test_a_claim_of_the_default_class_gets_a_volume_on_the_chosen_node(plane):
    wanted = claim()
    del wanted["spec"]["storageClassName"]
    await created(plane, node("a"), node("b"), wanted)
    assert (await get_claim(plane))["spec"]["storageClassName"] == "standard"
    assert await phases(plane) == {"data": "Pending"}
    assert await reasons(plane) == ["WaitForFirstConsumer"]
    chosen = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "b"}}}
    await plane.client.patch(
        PERSISTENT_VOLUME_CLAIMS, "default", "data", chosen, patch_type="merge"
    )
    await plane.settled()
    bound = await get_claim(plane)
    assert bound["status"]["phase"] == "Bound"
    made = await get_volume(plane, f"pvc-{bound['metadata']['uid']}")
    [term] = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["b"]
    assert made["spec"]["local"]["path"].endswith(made["metadata"]["name"])
    assert "ProvisioningSucceeded" in await reasons(plane)


@with_binder
async def test_a_volume_that_was_made_goes_with_its_claim(plane):
    await at_once_class(plane)
    await created(plane, node("a"), claim(storageClassName="at-once"))
    assert (await get_claim(plane))["status"]["phase"] == "Bound"
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    await plane.settled()
    assert await phases(plane) == {}


@with_binder
async def test_a_volume_with_a_directory_waits_for_its_node_or_the_nodes_end(plane):
    await at_once_class(plane)
    real = node("a", **{"sampan.io/local-volumes": "/data/volumes"})
    await created(plane, real, claim(storageClassName="at-once"))
    name = (await get_claim(plane))["spec"]["volumeName"]
    made = await get_volume(plane, name)
    assert made["spec"]["local"]["path"] == f"/data/volumes/{name}"
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    await plane.settled()
    assert (await get_volume(plane, name))["metadata"]["finalizers"] == ["sampan.io/local-volume"]
    await plane.client.delete(NODES, "", "a")
    await plane.settled()
    try:
        await get_volume(plane, name)
    except NotFound:
        return
    raise AssertionError("it is still there")


@with_binder
async def test_what_the_provisioner_cannot_make_is_refused_by_name(plane):
    await at_once_class(plane)
    await created(plane, node("a"), claim(storageClassName="at-once", volumeMode="Block"))
    assert (await get_claim(plane))["status"]["phase"] == "Pending"
    assert "ProvisioningFailed" in await reasons(plane)


async def at_once_class(plane, **more):
    await created(
        plane,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "at-once"},
            "provisioner": "sampan.io/local",
            "volumeBindingMode": "Immediate",
            **more,
        },
    )


async def ask_for(plane, size):
    patch = {"spec": {"resources": {"requests": {"storage": size}}}}
    await plane.client.patch(PERSISTENT_VOLUME_CLAIMS, "default", "data", patch, patch_type="merge")
    await plane.settled()


@with_binder
async def test_a_volume_of_ours_grows_with_its_claim(plane):
    await at_once_class(plane, allowVolumeExpansion=True)
    await created(plane, node("a"), claim(storageClassName="at-once"))
    await ask_for(plane, "7Gi")
    found = await get_claim(plane)
    assert found["status"]["capacity"] == {"storage": "7Gi"}
    made = await get_volume(plane, found["spec"]["volumeName"])
    assert made["spec"]["capacity"] == {"storage": "7Gi"}
    assert "VolumeResizeSuccessful" in await reasons(plane)


@with_binder
async def test_of_another_provisioners_volume_it_is_said_who_has_to_do_it(plane):
    await at_once_class(plane, provisioner="example.com/other", allowVolumeExpansion=True)
    await created(plane, volume("v", storageClassName="at-once"), claim(storageClassName="at-once"))
    assert (await get_claim(plane))["status"]["phase"] == "Bound"
    before = (await get_claim(plane))["status"]["capacity"]
    await ask_for(plane, "70Gi")
    assert (await get_claim(plane))["status"]["capacity"] == before
    assert "ExternalExpanding" in await reasons(plane)


@with_binder
async def test_a_claim_says_which_pods_wait_with_it(plane):
    await created(plane, claim(storageClassName="standard"))
    assert await reasons(plane) == ["WaitForFirstConsumer"]
    user = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "user", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [user]},
    }
    await plane.client.create(PODS, pod)
    await plane.settled(seconds=16)
    events = (await plane.client.list(EVENTS, "default")).items
    assert [one["message"] for one in events if one["reason"] == "WaitForPodScheduled"] == [
        "waiting for pod user to be scheduled"
    ]


with_classes = story(["volumeattributesclass-protection-controller", "pvc-protection"])


@with_classes
async def test_an_attributes_class_stays_while_a_claim_names_it(plane):
    gold = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttributesClass",
        "metadata": {"name": "gold"},
        "driverName": "csi.example.com",
        "parameters": {"iops": "100"},
    }
    await plane.client.create(VOLUME_ATTRIBUTES_CLASSES, gold)
    named = claim(volumeAttributesClassName="gold", storageClassName="fast")
    await plane.client.create(PERSISTENT_VOLUME_CLAIMS, named)
    await plane.settled()
    stored = await plane.client.get(VOLUME_ATTRIBUTES_CLASSES, "", "gold")
    assert stored["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]
    await plane.client.delete(VOLUME_ATTRIBUTES_CLASSES, "", "gold")
    await plane.settled()
    held = await plane.client.get(VOLUME_ATTRIBUTES_CLASSES, "", "gold")
    assert held["metadata"]["deletionTimestamp"]
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    await plane.settled()
    assert (await plane.client.list(VOLUME_ATTRIBUTES_CLASSES)).items == []
