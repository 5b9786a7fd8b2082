import re

import pytest

from sampan.kubelet.container_spec.environment import Surroundings
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.volumes.payload import File, Sources, payload_room
from sampan.kubelet.volumes.plan import (
    Directory,
    Files,
    HostPath,
    LocalPath,
    Node,
    Plugged,
    memory_limit,
    plan_volumes,
)

NODE = Node("/k", 1024**3, Surroundings("node-1"))
CLAIM = {
    "metadata": {"uid": "claim-uid"},
    "spec": {"volumeName": "pv1"},
    "status": {"phase": "Bound"},
}


def make_pod(*volumes, containers=(), **spec):
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
        "spec": {"volumes": list(volumes), "containers": list(containers), **spec},
    }


def planned(*volumes, objects=None, bound=None, **spec):
    pod = make_pod(*volumes, **spec)
    token, room = lambda projection: "", payload_room()
    sources = Sources(pod, objects or {}, NODE.around, token, room)
    return list(plan_volumes(sources, bound or {}, NODE))


def test_every_type_has_its_place_in_the_pod_s_directory():
    """[N15] the layout is the original's"""
    volumes = [
        {"name": "e", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "c"}},
        {"name": "s", "secret": {"secretName": "s", "optional": True}},
        {"name": "d", "downwardAPI": {}},
        {"name": "p", "projected": {}},
        {"name": "h", "hostPath": {"path": "/srv", "type": "Directory"}},
    ]
    objects = {("ConfigMap", "c"): {"data": {"a": "b"}}}
    context = {"fsGroup": 9}
    base = "/k/pods/u1/volumes/kubernetes.io~"
    assert planned(*volumes, objects=objects, securityContext=context) == [
        Directory("e", f"{base}empty-dir/e", group=9),
        Files("c", f"{base}configmap/c", False, {"a": File(b"b", 0o644)}, 9),
        Files("s", f"{base}secret/s", True, {}, 9),
        Files("d", f"{base}downward-api/d", True, {}, 9),
        Files("p", f"{base}projected/p", True, {}, 9),
        HostPath("h", "/srv", "Directory"),
    ]


@pytest.mark.parametrize(
    ("limit", "memory", "size"),
    [("64Mi", None, 64 << 20), (None, "10Mi", 10 << 20), ("64Mi", "10Mi", 10 << 20),
     (None, None, 1 << 30)],
)  # fmt: skip
def test_memory_is_bounded_by_the_smallest_of_its_limits(limit, memory, size):
    """[N15] emptyDir in memory: its own limit, the pod's, the node's"""
    source = {"medium": "Memory"} | ({"sizeLimit": limit} if limit else {})
    container = {"name": "c", "resources": {"limits": {"memory": memory} if memory else {}}}
    (step,) = planned({"name": "m", "emptyDir": source}, containers=[container])
    assert (step.in_memory, step.size_bytes) == (True, size)


def test_a_pod_is_limited_only_if_all_of_its_containers_are():
    limited = {"resources": {"limits": {"memory": "10Mi"}}}
    assert memory_limit(make_pod(containers=[limited, limited])["spec"]) == 20 << 20
    assert memory_limit(make_pod(containers=[limited, {}])["spec"]) == 0
    assert memory_limit(make_pod(containers=[{}], **limited)["spec"]) == 10 << 20


def test_a_directory_whose_mounts_travel_is_shared():
    """[N15] mountPropagation"""
    mounts = [{"name": "e", "mountPath": "/x", "mountPropagation": "Bidirectional"}]
    (step,) = planned({"name": "e", "emptyDir": {}}, containers=[{"volumeMounts": mounts}])
    assert step.shared
    (step,) = planned({"name": "e", "emptyDir": {}}, containers=[{"volumeMounts": [{"name": "e"}]}])
    assert not step.shared


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"iscsi": {}}, "volumes of type iscsi are not supported by this node yet"),
        ({"fc": {}}, "volumes of type fc are not supported by this node yet"),
        ({"emptyDir": {"medium": "Tea"}}, 'unknown storage medium "Tea"'),
        (
            {"emptyDir": {"medium": "HugePages"}},
            "medium HugePages: hugePages storage requested, but there is no resource request for",
        ),
        ({"emptyDir": {"medium": "HugePages-tea"}}, "quantities must match"),
        ({"configMap": {"name": "c"}}, 'configmap "c" not found'),
    ],
)
def test_what_cannot_be_mounted_is_named(source, why):
    """[N15, X6] never in silence"""
    with pytest.raises(VolumeFailure) as caught:
        planned({"name": "v", **source})
    assert str(caught.value).startswith('MountVolume.SetUp failed for volume "v" : ')
    assert why in str(caught.value)


def asking(**pages):
    requests = {f"hugepages-{size}": "4Mi" for size in pages}
    return [{"name": "c", "resources": {"requests": requests}}]


def test_memory_of_huge_pages():
    """[H6]"""
    volume = {"name": "e", "emptyDir": {"medium": "HugePages"}}
    (step,) = planned(volume, containers=asking(**{"2Mi": 1}))
    assert (step.page_size, step.in_memory) == ("2Mi", False)
    with pytest.raises(VolumeFailure, match="if container requests multiple huge page sizes"):
        planned(volume, containers=asking(**{"2Mi": 1, "1Gi": 1}))
    volume["emptyDir"]["medium"] = "HugePages-1Gi"
    (step,) = planned(volume, containers=asking(**{"2Mi": 1, "1Gi": 1}))
    assert step.page_size == "1Gi"
    with pytest.raises(VolumeFailure, match="medium HugePages-1Gi: hugePages storage requested"):
        planned(volume, containers=asking(**{"2Mi": 1}))


def test_what_another_machine_exports():
    """[H6]"""
    source = {"server": "fd00::1", "path": "/srv", "readOnly": True}
    (step,) = planned({"name": "n", "nfs": source})
    assert (step.source, step.read_only) == ("[fd00::1]:/srv", True)
    assert step.path.endswith("/volumes/kubernetes.io~nfs/n")
    (step,) = claimed({"nfs": {"server": "s", "path": "/x"}, "mountOptions": ["vers=4.2"]})
    assert (step.source, step.options, step.read_only) == ("s:/x", ("vers=4.2",), False)
    assert step.path.endswith("/volumes/kubernetes.io~nfs/pv1")


def claimed(spec, claim=CLAIM, **pod):
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data", "readOnly": False}}
    objects = {("PersistentVolumeClaim", "data"): claim}
    persistent = {"metadata": {"name": "pv1"}, "spec": {"claimRef": {"uid": "claim-uid"}, **spec}}
    return planned(volume, objects=objects, bound={"v": persistent}, **pod)


def test_a_claim_leads_to_the_path_of_its_volume():
    """[N15]"""
    assert claimed({"hostPath": {"path": "/srv", "type": "Directory"}}) == [
        HostPath("v", "/srv", "Directory")
    ]
    context = {"fsGroup": 9, "fsGroupChangePolicy": "OnRootMismatch"}
    assert claimed({"local": {"path": "/disk"}}, securityContext=context) == [
        LocalPath("v", "/disk", False, 9, True)
    ]
    read_only = {"local": {"path": "/disk"}, "accessModes": ["ReadOnlyMany"]}
    assert claimed(read_only, securityContext=context) == [
        LocalPath("v", "/disk", True, None, True)
    ]


@pytest.mark.parametrize(
    ("spec", "claim", "why"),
    [
        ({}, None, 'from API server: persistentvolumeclaims "data" not found'),
        ({}, {"spec": {}}, "PVC is not bound"),
        ({}, {**CLAIM, "status": {"phase": "Lost"}}, "PVC is not bound"),
        ({}, {**CLAIM, "metadata": {"deletionTimestamp": "x"}}, "PVC is being deleted"),
        ({"claimRef": {"uid": "other"}}, CLAIM, "PV pv1 is bound to another claim"),
        (
            {"volumeMode": "Block", "nfs": {}},
            CLAIM,
            "PV pv1: volumes of type nfs of mode Block are not supported by this node yet",
        ),
        ({"iscsi": {}}, CLAIM, "PV pv1: volumes of type iscsi are not supported by this node yet"),
    ],
)
def test_a_claim_that_cannot_be_had_is_explained(spec, claim, why):
    """[N15] bad input: missing, unbound, somebody else's"""
    with pytest.raises(VolumeFailure) as caught:
        claimed(spec, claim)
    start = "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
    assert str(caught.value).startswith(start)
    assert "error processing PVC shop/data: " in str(caught.value)
    assert why in str(caught.value)


def test_an_ephemeral_volume_has_a_claim_of_the_pod_s_own():
    """[N15] named after both; somebody else's of that name is never used"""
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}
    key = ("PersistentVolumeClaim", "web-v")
    bound = {"v": {"spec": {"claimRef": {"uid": "claim-uid"}, "local": {"path": "/disk"}}}}
    owners = [{"uid": "u1", "controller": True}]
    owned = {**CLAIM, "metadata": {**CLAIM["metadata"], "ownerReferences": owners}}
    assert planned(volume, objects={key: owned}, bound=bound) == [LocalPath("v", "/disk")]
    with pytest.raises(VolumeFailure, match="PVC shop/web-v was not created for pod shop/web"):
        planned(volume, objects={key: CLAIM}, bound=bound)
    with pytest.raises(VolumeFailure, match='persistentvolumeclaims "web-v" not found'):
        planned(volume, objects={key: None}, bound=bound)


def test_in_tree_disks_are_their_drivers_volumes():
    """[H1] behind a claim, and in the pod's own spec."""
    disk = {"metadata": {"name": "pv1"}, "spec": {
        "claimRef": {"uid": "claim-uid"}, "accessModes": ["ReadWriteMany"],
        "gcePersistentDisk": {"pdName": "d", "fsType": "xfs"},
    }}  # fmt: skip
    claimed = {"name": "v", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}}
    objects = {("PersistentVolumeClaim", "data"): CLAIM}
    (step,) = planned(claimed, objects=objects, bound={"v": disk})
    assert isinstance(step, Plugged)
    found = step.volume
    assert (found.name, found.driver, found.fs_type) == ("pv1", "pd.csi.storage.gke.io", "xfs")
    assert found.handle == "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"
    assert (found.access_modes, found.read_only) == (("ReadWriteOnce",), True)
    (own,) = planned({"name": "v", "awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}})
    found = own.volume
    assert (found.name, found.handle) == ("ebs.csi.aws.com-vol-1", "vol-1")
    assert not found.read_only  # as upstream


def test_a_disk_that_cannot_be_translated_says_so():
    disk = {"name": "v", "azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Shared"}}
    why = "failed to translate in-tree pv to CSI: kind(Shared) is not supported in csi migration"
    with pytest.raises(VolumeFailure, match=re.escape(f"failed to process volumes=[v]: {why}")):
        planned(disk)
