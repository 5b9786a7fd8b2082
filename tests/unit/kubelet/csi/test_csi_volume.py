"""What is read from PersistentVolumes, inline volumes and CSIDrivers, and decided by it."""

import pytest

from sampan.api.rules.storage import attachment_name
from sampan.kubelet.csi.csi_volume import (
    EPHEMERAL,
    CsiDriver,
    CsiVolume,
    csi_driver,
    node_gives_group,
    of_inline_volume,
    of_persistent_volume,
    pod_attributes,
    token_attribute,
    unique_name,
    why_unsupported,
)
from sampan.kubelet.csi.volume_paths import CsiPaths, seen_by_driver

POD = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
    "spec": {"serviceAccountName": "clerk"},
}


def test_a_persistent_volume_is_read_whole():
    volume = of_persistent_volume(
        {
            "metadata": {"name": "pv1"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                "mountOptions": ["noatime"],
                "claimRef": {"namespace": "shop", "name": "data"},
                "csi": {
                    "driver": "d", "volumeHandle": "h", "fsType": "ext4",
                    "volumeAttributes": {"a": "b"},
                    "nodeStageSecretRef": {"namespace": "s", "name": "one"},
                    "nodePublishSecretRef": {"namespace": "s", "name": "two"},
                    "nodeExpandSecretRef": {"namespace": "s", "name": "three"},
                },
            },
        },
        read_only=True,
    )  # fmt: skip
    assert volume == CsiVolume(
        name="pv1", driver="d", handle="h", fs_type="ext4",
        access_modes=("ReadWriteOnce", "ReadOnlyMany"), read_only=True, attributes={"a": "b"},
        mount_options=("noatime",), stage_secret=("s", "one"), publish_secret=("s", "two"),
        expand_secret=("s", "three"), capacity="1Gi", claim=("shop", "data"),
    )  # fmt: skip
    assert volume.access_mode == "ReadWriteOnce"
    assert unique_name(volume) == "kubernetes.io/csi/d^h"
    assert not volume.only_one_pod


def test_an_inline_volume_has_a_handle_of_its_pod_and_a_secret_of_its_namespace():
    source = {"driver": "d", "nodePublishSecretRef": {"name": "key"}, "readOnly": True}
    volume = of_inline_volume({"name": "v", "csi": source}, POD)
    # sha256 of "u1v", as upstream makes it
    assert volume.handle == ("csi-3df5ffc60026e8207ea59c1564beebc5d9845fde03ed041b10fa368ddd17875f")
    assert (volume.mode, volume.publish_secret, volume.read_only) == (
        EPHEMERAL, ("shop", "key"), True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "volume", "gives"),
    [
        ("File", {}, True),
        ("None", {"fs_type": "ext4", "access_modes": ("ReadWriteOnce",)}, False),
        ("ReadWriteOnceWithFSType", {"fs_type": "ext4", "access_modes": ("ReadWriteOnce",)}, True),
        ("ReadWriteOnceWithFSType", {"access_modes": ("ReadWriteOnce",)}, False),
        ("ReadWriteOnceWithFSType", {"fs_type": "e", "access_modes": ("ReadWriteMany",)}, False),
        ("ReadWriteOnceWithFSType", {"fs_type": "e", "access_modes": ("ReadWriteOncePod",)}, True),
        ("ReadWriteOnceWithFSType", {"fs_type": "ext4", "mode": EPHEMERAL}, True),
        ("File", {"read_only": True}, False),
    ],
)
def test_who_gives_files_to_the_group(policy, volume, gives):
    found = CsiVolume("pv", "d", "h", **volume)
    assert node_gives_group(found, CsiDriver(fs_group_policy=policy), 5) is gives
    assert not node_gives_group(found, CsiDriver(fs_group_policy=policy), None)


def test_a_mode_that_the_driver_does_not_have_is_refused_in_upstream_s_words():
    inline = CsiVolume("v", "d", "h", mode=EPHEMERAL)
    assert why_unsupported(inline, csi_driver(None)) == (
        'volume mode "Ephemeral" not supported by driver d (no CSIDriver object)'
    )
    only = csi_driver({"spec": {"volumeLifecycleModes": ["Persistent"]}})
    assert why_unsupported(inline, only) == (
        'volume mode "Ephemeral" not supported by driver d (only supports ["Persistent"])'
    )
    assert why_unsupported(CsiVolume("v", "d", "h"), csi_driver(None)) == ""


def test_a_csi_driver_object_is_read_whole():
    spec = {
        "attachRequired": False, "podInfoOnMount": True, "fsGroupPolicy": "File",
        "volumeLifecycleModes": ["Ephemeral"], "requiresRepublish": True, "seLinuxMount": True,
        "tokenRequests": [{"audience": "a", "expirationSeconds": 600}, {"audience": ""}],
        "serviceAccountTokenInSecrets": True, "nodeAllocatableUpdatePeriodSeconds": 30,
    }  # fmt: skip
    found = csi_driver({"spec": spec})
    assert (found.attach_required, found.pod_info, found.modes) == (False, True, ("Ephemeral",))
    assert [(one.audience, one.seconds) for one in found.tokens] == [("a", 600), ("", None)]
    assert (found.republishes, found.tokens_in_secrets, found.allocatable_seconds) == (
        True, True, 30,
    )  # fmt: skip


def test_pod_information_and_tokens_are_attributes():
    attributes = pod_attributes(POD, CsiVolume("v", "d", "h", mode=EPHEMERAL))
    assert attributes == {
        "csi.storage.k8s.io/pod.name": "web",
        "csi.storage.k8s.io/pod.namespace": "shop",
        "csi.storage.k8s.io/pod.uid": "u1",
        "csi.storage.k8s.io/serviceAccount.name": "clerk",
        "csi.storage.k8s.io/ephemeral": "true",
    }
    status = {"token": "t", "expirationTimestamp": "2026-01-01T00:00:00Z"}
    assert token_attribute([("b", status), ("a", status)]) == {
        "csi.storage.k8s.io/serviceAccount.tokens": (
            '{"a":{"token":"t","expirationTimestamp":"2026-01-01T00:00:00Z"},'
            '"b":{"token":"t","expirationTimestamp":"2026-01-01T00:00:00Z"}}'
        )
    }
    assert token_attribute([]) == {}


def test_places_are_upstream_s():
    paths, volume = CsiPaths("/k"), CsiVolume("pv1", "d", "h")
    hashed = "aaa9402664f1a41f40ebbc52c9993eb66aeb366602958fdfaa283b71e64db123"
    assert paths.staging(volume) == f"/k/plugins/kubernetes.io/csi/d/{hashed}/globalmount"
    assert paths.target(volume, "u1") == "/k/pods/u1/volumes/kubernetes.io~csi/pv1/mount"
    block = CsiVolume("pv1", "d", "h", block=True)
    devices = "/k/plugins/kubernetes.io/csi/volumeDevices"
    assert paths.staging(block) == f"{devices}/staging/pv1"
    assert paths.target(block, "u1") == f"{devices}/publish/pv1/u1"
    assert paths.device_link(block, "u1") == "/k/pods/u1/volumeDevices/kubernetes.io~csi/pv1"


def test_an_attachment_is_named_after_volume_driver_and_node():
    """sha256 of "hdn"."""
    assert attachment_name("h", "d", "n") == (
        "csi-9072ed11cc1acb5fa433a877ff339b6311d013f33bddd1d0092711a8ace5b16d"
    )


@pytest.mark.parametrize(
    ("endpoint", "seen"),
    [
        ("/var/lib/kubelet/plugins/d/csi.sock", "/var/lib/kubelet/pods/u/x"),
        ("/data/kubelet/plugins/d/csi.sock", "/data/kubelet/pods/u/x"),
    ],
)
def test_a_driver_sees_the_kubelet_s_directory_where_it_listens(endpoint, seen):
    assert seen_by_driver("/data/kubelet/pods/u/x", "/data/kubelet", endpoint) == seen
