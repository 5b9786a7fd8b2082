"""cmd/verbs/image.py: which names go when an image is removed by one of them."""

import pytest

from sampan.cmd.verbs.image import names_to_remove
from sampan.kubelet.contracts.runtime import Image

ID, DIGEST = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
ONE, TWO, OTHER = "docker.io/library/web:1", "docker.io/library/web:2", "registry.test/web:1"
WEB, REST = f"docker.io/library/web@{DIGEST}", f"registry.test/web@{DIGEST}"
BOTH = Image(ID, (ONE, TWO, OTHER), (WEB, REST), 1)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("web:1", [ONE]),
        (ONE, [ONE]),
        (OTHER, [OTHER, REST]),  # its repository has no tag left
        (WEB, [ONE, TWO, WEB]),
        (ID, [ONE, TWO, OTHER, WEB, REST]),
        ("aaaaaaaa", [ONE, TWO, OTHER, WEB, REST]),  # the beginning of the id
    ],
)
def test_one_name_of_several_goes_alone(name, gone):
    assert names_to_remove(BOTH, name) == gone


def test_the_last_name_takes_all_that_the_image_has():
    assert names_to_remove(Image(ID, (ONE,), (WEB,), 1), "web:1") == [ONE, WEB]
    assert names_to_remove(Image(ID, (), (), 1), ID) == [ID]
