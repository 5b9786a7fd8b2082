"""Which versions a CSI driver may have."""

import re

import pytest

from sampan.kubelet.csi.csi_drivers import highest_version


@pytest.mark.parametrize(
    ("written", "highest"),
    [(("1.0.0",), (1, 0, 0)), (("0.3.0", "1.2.0", "1.1.9"), (1, 2, 0)), (("1.0", "2.0"), (1, 0))],
)
def test_the_highest_of_major_one_counts(written, highest):
    assert highest_version(written) == highest


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ((), "empty array for supported versions"),
        (("0.3.0",), "highest supported version reported is 0.3.0, must be v1.x"),
        (("2.0.0",), "could not find a highest supported version from versions ([2.0.0]) reported"),
        (("new",), "could not find a highest supported version from versions ([new]) reported"),
    ],
)
def test_others_are_refused(written, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        highest_version(written)
