import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.csi.csi_volume import CsiDriver, CsiVolume
from sampan.kubelet.csi.selinux_mount import file_label, mount_label, mount_option

CONTEXT = "system_u:object_r:container_file_t:s0"
LEVEL = {"level": "s0:c1,c2"}
LABEL = "system_u:object_r:container_file_t:s0:c1,c2"
DRIVER = CsiDriver(exists=True, selinux_mount=True)
ALONE = CsiVolume("pv", "d", "h", access_modes=("ReadWriteOncePod",), claim=("shop", "claim"))
SHARED = CsiVolume("pv", "d", "h", access_modes=("ReadWriteOnce",), claim=("shop", "claim"))


def pod(*options, **context):
    """A container for each; `context`: of the pod."""
    containers = [
        {"name": f"c{number}", "volumeMounts": [{"name": "v"}],
         **({"securityContext": {"seLinuxOptions": one}} if one else {})}
        for number, one in enumerate(options)
    ]  # fmt: skip
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]
    spec = {"containers": containers, "volumes": volumes, "securityContext": context}
    return {"metadata": {"name": "p", "namespace": "shop"}, "spec": spec}


def test_a_volume_of_one_pod_is_mounted_with_its_label():
    assert mount_label(pod(LEVEL), ALONE, DRIVER, CONTEXT) == LABEL
    assert mount_label(pod(None, seLinuxOptions=LEVEL), ALONE, DRIVER, CONTEXT) == LABEL
    assert mount_label(pod(LEVEL, LEVEL, None), ALONE, DRIVER, CONTEXT) == LABEL


@pytest.mark.parametrize(
    ("wanted", "volume", "driver", "context"),
    [
        (pod(LEVEL), ALONE, DRIVER, ""),  # a machine without SELinux
        (pod(LEVEL), ALONE, CsiDriver(exists=True), CONTEXT),
        (pod(None), ALONE, DRIVER, CONTEXT),
        (pod(LEVEL, seLinuxChangePolicy="Recursive"), ALONE, DRIVER, CONTEXT),
        (pod(LEVEL), CsiVolume("v", "d", "h", mode="Ephemeral"), DRIVER, CONTEXT),
    ],
)
def test_others_are_labelled_file_by_file(wanted, volume, driver, context):
    assert mount_label(wanted, volume, driver, context) == ""


@pytest.mark.kubernetes("1.37")
def test_by_their_gates():
    assert mount_label(pod(LEVEL), SHARED, DRIVER, CONTEXT) == LABEL
    with features.used(Release("1.35")):
        assert mount_label(pod(LEVEL), SHARED, DRIVER, CONTEXT) == ""
    with features.used(Release("1.35", gates={"SELinuxMount": True})):
        assert mount_label(pod(LEVEL), SHARED, DRIVER, CONTEXT) == LABEL
    with features.used(Release("1.35", gates={"SELinuxMountReadWriteOncePod": False})):
        assert mount_label(pod(LEVEL), ALONE, DRIVER, CONTEXT) == ""


def test_containers_that_do_not_agree_are_refused():
    with pytest.raises(VolumeFailure, match="multiple SELinux labels found: "):
        mount_label(pod(LEVEL, {"level": "s0:c3"}), ALONE, DRIVER, CONTEXT)


def test_a_file_has_user_and_level_of_the_process():
    assert file_label({"user": "u", "role": "r", "type": "t"}, CONTEXT) == (
        "u:object_r:container_file_t:s0"
    )
    assert file_label({}, CONTEXT) == ""
    assert mount_option(LABEL) == (f'context="{LABEL}"',)
    assert mount_option("") == ()
