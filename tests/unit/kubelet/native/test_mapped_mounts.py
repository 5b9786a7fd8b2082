"""Files of the node as the users of a pod with users of its own see them."""

import pytest

from sampan.kubelet.native.mapped_mounts import is_possible


@pytest.mark.parametrize(
    ("release", "runtime", "possible"),
    [
        ("6.1.0-18-amd64", "crun", True),
        ("5.19.0", "crun", True),
        ("5.15.0-91-generic", "crun", False),
        ("6.1.0-18-amd64", "runc", False),
        ("odd", "crun", False),
    ],
)
def test_it_takes_a_kernel_and_a_runtime_that_can(release, runtime, possible):
    assert is_possible(release, runtime) is possible
