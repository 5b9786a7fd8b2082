"""Disks of in-tree plugins in the control plane: CSI drivers stand for them [H1]."""

from sampan.api.resources import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from tests.support.worlds.control_plane import story

SPACE = "default"
EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"


async def make(plane, row, name, spec, **fields):
    meta = {"name": name, **({"namespace": SPACE} if row.namespaced else {})}
    made = {"apiVersion": row.api_version, "kind": row.kind, "metadata": meta, **fields}
    if spec is not None:
        made["spec"] = spec
    made["metadata"] = {**meta, **fields.get("metadata", {})}
    return await plane.client.create(row, made, SPACE if row.namespaced else "")


async def make_node(plane):
    await make(plane, NODES, "n1", {}, metadata={"annotations": {MANAGED: "true"}})


async def make_pod(plane, name, *volumes):
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "app"}], "volumes": [*volumes]}
    await make(plane, PODS, name, spec)


def claim_spec(**more):
    size = {"requests": {"storage": "1Gi"}}
    return {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": size, **more}


async def make_bound(plane):
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **EBS}
    await make(plane, PERSISTENT_VOLUMES, "pv1", spec)
    await make(plane, PERSISTENT_VOLUME_CLAIMS, "data", claim_spec(volumeName="pv1"))
    await plane.settled()


async def attachments(plane):
    return [item["spec"] for item in (await plane.client.list(VOLUME_ATTACHMENTS)).items]


ATTACHING = ["persistentvolume-binder-controller", "persistentvolume-attach-detach-controller"]


@story(ATTACHING)
async def test_a_claimed_disk_is_attached_by_its_driver(plane):
    await make_node(plane)
    await make_bound(plane)
    await make_pod(plane, "db", {"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
    await plane.settled()
    [found] = await attachments(plane)
    assert found == {
        "attacher": "ebs.csi.aws.com", "nodeName": "n1", "source": {"persistentVolumeName": "pv1"}
    }  # fmt: skip


@story(ATTACHING)
async def test_a_pod_s_own_disk_is_attached_with_its_spec_and_detached_with_the_pod(plane):
    await make_node(plane)
    await make_pod(plane, "db", {"name": "v", **EBS})
    await plane.settled()
    [found] = await attachments(plane)
    assert (found["attacher"], found["nodeName"]) == ("ebs.csi.aws.com", "n1")
    assert found["source"] == {
        "inlineVolumeSpec": {
            "accessModes": ["ReadWriteOnce"],
            "csi": {
                "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1",
                "volumeAttributes": {"partition": "0"},
            },
            "volumeMode": "Filesystem",
        }
    }  # fmt: skip
    await plane.client.delete(PODS, SPACE, "db", grace_seconds=0)
    await plane.settled()
    assert await attachments(plane) == []


@story(["persistentvolume-binder-controller"])
async def test_a_claim_of_an_in_tree_class_is_for_the_driver_to_make(plane):
    await make(plane, STORAGE_CLASSES, "gp2", None, provisioner="kubernetes.io/aws-ebs")
    await make(plane, PERSISTENT_VOLUME_CLAIMS, "data", claim_spec(storageClassName="gp2"))
    await plane.settled()
    claim = await plane.client.get(PERSISTENT_VOLUME_CLAIMS, SPACE, "data")
    assert claim["metadata"]["annotations"] == {
        "volume.kubernetes.io/storage-provisioner": "ebs.csi.aws.com",
        "volume.beta.kubernetes.io/storage-provisioner": "ebs.csi.aws.com",
    }
    [event] = (await plane.client.list(EVENTS, SPACE)).items
    assert "either by the external provisioner 'ebs.csi.aws.com' or" in event["message"]


@story(["persistentvolume-binder-controller"])
async def test_a_volume_that_a_plugin_made_is_handed_to_its_driver(plane):
    marks = {"annotations": {"pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs"},
             "finalizers": ["kubernetes.io/pv-controller"]}  # fmt: skip
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **EBS}
    await make(plane, PERSISTENT_VOLUMES, "pv1", spec, metadata=marks)
    await plane.settled()
    meta = (await plane.client.get(PERSISTENT_VOLUMES, "", "pv1"))["metadata"]
    assert meta["annotations"]["pv.kubernetes.io/migrated-to"] == "ebs.csi.aws.com"
    assert meta["finalizers"] == ["kubernetes.io/pv-protection"]


@story(["persistentvolume-binder-controller", "persistentvolume-expander-controller"])
async def test_a_growing_claim_waits_for_the_driver_s_resizer(plane):
    await make(plane, STORAGE_CLASSES, "gp2", None, provisioner="kubernetes.io/aws-ebs",
               allowVolumeExpansion=True)  # fmt: skip
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **EBS}
    await make(plane, PERSISTENT_VOLUMES, "pv1", {**spec, "storageClassName": "gp2"})
    wanted = claim_spec(volumeName="pv1", storageClassName="gp2")
    await make(plane, PERSISTENT_VOLUME_CLAIMS, "data", wanted)
    await plane.settled()
    more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    await plane.client.patch(PERSISTENT_VOLUME_CLAIMS, SPACE, "data", more, patch_type="merge")
    await plane.settled()
    claim = await plane.client.get(PERSISTENT_VOLUME_CLAIMS, SPACE, "data")
    notes = claim["metadata"]["annotations"]
    assert notes["volume.kubernetes.io/storage-resizer"] == "ebs.csi.aws.com"
    told = {item["message"] for item in (await plane.client.list(EVENTS, SPACE)).items}
    assert (
        "CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to expand "
        "the pvc"
    ) in told
