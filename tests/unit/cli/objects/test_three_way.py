"""Patches between objects."""

import pytest

from sampan.cli.objects.three_way import has_conflicts


@pytest.mark.parametrize(
    ("one", "two", "conflicts"),
    [
        ({"a": 1}, {"b": 2}, False),
        ({"a": 1}, {"a": 1}, False),
        ({"a": None}, {"a": None}, False),
        ({"a": 1}, {"a": 2}, True),
        ({"a": {"b": 1, "c": 1}}, {"a": {"c": 2}}, True),
        ({"a": {"b": 1}}, {"a": None}, True),
        ({"a": [1]}, {"a": [1, 2]}, True),
    ],
)
def test_patches_conflict_where_they_want_different_things(one, two, conflicts):
    assert has_conflicts(one, two) is conflicts
    assert has_conflicts(two, one) is conflicts
