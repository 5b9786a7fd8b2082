"""cli/describe/generic.py: titles of fields that nobody described specially."""

import pytest

from sampan.cli.describe.generic import title


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("apiVersion", "API Version"),
        ("uid", "UID"),
        ("podIP", "Pod IP"),
        ("ip", "Ip"),
        ("creationTimestamp", "Creation Timestamp"),
        ("openAPIV3Schema", "openAPIV3Schema"),
        ("$patch", "$patch"),
    ],
)
def test_a_name_of_letters_becomes_words(field, shown):
    assert title(field) == shown
