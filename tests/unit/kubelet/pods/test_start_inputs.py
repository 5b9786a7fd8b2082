import asyncio

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


async def pulled(image):
    return image


def test_an_image_that_is_missing_keeps_those_who_need_it_from_starting_and_no_others():
    async def story():
        for name, mounts, image, volume, expected in (
            ("web", (), APP, ABSENT, APP),
            ("broken", (), ABSENT, MODEL, ABSENT),
            ("reader", ("model",), APP, ABSENT, ABSENT),
            ("reader", ("model",), APP, MODEL, APP),
        ):
            pulls, volumes = pulled(image), pulled(volume)
            inputs = StartInputs(pulls={name: pulls}, volume_pulls={"model": volumes})
            if expected is ABSENT:
                with pytest.raises(ImageFailure, match="no such image"):
                    await inputs.image_of(container(name, *mounts))
            else:
                assert await inputs.image_of(container(name, *mounts)) is expected
            pulls.close(), volumes.close()

    asyncio.run(story())


def test_images_that_are_volumes_are_mounted_by_the_runtime_beside_the_others():
    data = MountedVolume("/data")
    inputs = StartInputs(volume_images={"model": MODEL}, volumes={"data": data})
    assert inputs.mounts() == {
        "data": data, "model": MountedVolume("", read_only=True, image="model-id"),
    }  # fmt: skip
