"""Volumes that are images [N15]."""

import pytest

from sampan.kubelet.container_spec.generate import ContainerContext, NodeFacts, container_spec
from sampan.kubelet.contracts.runtime import Image, RuntimeFeatures
from sampan.kubelet.contracts.volumes_hook import MountedVolume, VolumeFailure
from sampan.kubelet.images.image_volumes import check_image_volumes, image_volumes, mounted_by

SOURCE = {"reference": "registry.example/data:1", "pullPolicy": "IfNotPresent"}
CONTAINER = {
    "name": "c",
    "image": "app:1",
    "volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "etc"}],
}
POD = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u"},
    "spec": {
        "containers": [CONTAINER],
        "volumes": [{"name": "data", "image": SOURCE}, {"name": "other", "emptyDir": {}}],
    },
}


def test_they_are_pulled_like_a_containers_image():
    assert image_volumes(POD) == {
        "data": {
            "name": "data",
            "image": "registry.example/data:1",
            "imagePullPolicy": "IfNotPresent",
        }
    }
    assert mounted_by(CONTAINER) == {"data"}


def test_a_runtime_that_mounts_no_images_is_named_as_the_reason():
    check_image_volumes(POD, RuntimeFeatures(image_volumes=True))
    check_image_volumes({"spec": {}}, RuntimeFeatures())
    with pytest.raises(VolumeFailure, match="need a container runtime that mounts images"):
        check_image_volumes(POD, RuntimeFeatures())


def test_the_runtime_gets_the_image_and_the_path_in_it():
    spec = container_spec(
        POD,
        CONTAINER,
        ContainerContext(
            attempt=0,
            image_id="sha256:app",
            image=Image("sha256:app", (), (), 1, uid=0),
            objects={},
            pod_ips=(),
            node=NodeFacts("n", "/root", "/logs"),
            mounts={"data": MountedVolume("", read_only=True, image="sha256:data")},
        ),
    )
    [mount] = [one for one in spec.mounts if one.volume]
    assert (mount.image, mount.image_sub_path) == ("sha256:data", "etc")
    assert (mount.host_path, mount.sub_path, mount.read_only) == ("", "", True)
