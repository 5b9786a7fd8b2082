import pytest

from sampan.kubelet.contracts.runtime import ImageNotFound, RuntimeFailure
from sampan.kubelet.simulated.images import SimulatedImages


def test_an_image_is_found_by_name_and_by_id():
    images = SimulatedImages(["registry.example:5000/app"])
    found = images.find("registry.example:5000/app")
    assert images.find(found.id) is found
    assert found.digests[0].startswith("registry.example:5000/app@sha256:")
    images.remove(found.id)
    assert images.all() == []


def test_two_tags_cannot_be_pulled():
    images = SimulatedImages(())
    assert images.pull("app:1").tags == ("app:1",)
    with pytest.raises(ImageNotFound, match="not found"):
        images.pull("app:missing")
    with pytest.raises(RuntimeFailure, match="unpack"):
        images.pull("app:broken")


def test_an_image_is_nobodys_root_unless_its_tag_says_so():
    images = SimulatedImages(())
    assert images.pull("app:1").uid == 65532
    assert images.pull("app:root").uid is None
