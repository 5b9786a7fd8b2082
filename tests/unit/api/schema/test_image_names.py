import pytest

from sampan.api.defaults.containers import pull_policy_of
from sampan.api.schema.image_names import image_is_valid


@pytest.mark.parametrize("image", ["nginx", "a.b:5000/c/d:1", "x@sha256:" + "0" * 64])
def test_names_of_images(image):
    assert image_is_valid(image)


@pytest.mark.parametrize("image", ["80%", "/a/b", "a b", "*", "Always", "-1", "b" * 300])
def test_what_is_no_name_is_not_pulled_always(image):
    """As an original answers: what cannot be read has no tag that is `latest`."""
    assert pull_policy_of(image) == "IfNotPresent"
    assert pull_policy_of("nginx") == "Always"
