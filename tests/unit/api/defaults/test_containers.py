"""Defaults of containers."""

import pytest

from sampan.api.defaults.containers import pull_policy_of


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:0", "IfNotPresent"),
        ("nginx:1@sha256:0", "IfNotPresent"),
        ("nginx:latest@sha256:0", "Always"),
        ("", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_from_the_tag(image, expected):
    """[N10]"""
    assert pull_policy_of(image) == expected
