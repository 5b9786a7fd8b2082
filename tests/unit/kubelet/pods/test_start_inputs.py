import pytest

from sampan.kubelet.contracts.runtime import Image
from sampan.kubelet.contracts.volumes_hook import MountedVolume
from sampan.kubelet.images.image_manager import ImageFailure
from sampan.kubelet.pods.start_inputs import StartInputs

APP = Image("app-id", (), (), 1)
MODEL = Image("model-id", (), (), 1)
ABSENT = ImageFailure("ErrImagePull", "no such image")


def container(name, *mounts):
    return {"name": name, "volumeMounts": [{"name": each, "mountPath": "/m"} for each in mounts]}


def test_an_image_that_is_missing_keeps_those_who_need_it_from_starting_and_no_others():
    inputs = StartInputs(
        images={"web": APP, "broken": ABSENT, "reader": APP}, volume_images={"model": ABSENT}
    )
    assert inputs.image_of(container("web")) is APP
    for needs in (container("broken"), container("reader", "model")):
        with pytest.raises(ImageFailure, match="no such image"):
            inputs.image_of(needs)


def test_images_that_are_volumes_are_mounted_by_the_runtime_beside_the_others():
    data = MountedVolume("/data")
    inputs = StartInputs(volume_images={"model": MODEL, "other": ABSENT}, volumes={"data": data})
    assert inputs.mounts() == {
        "data": data, "model": MountedVolume("", read_only=True, image="model-id"),
    }  # fmt: skip
