"""api/objects.py: the words for what every object has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api import objects

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_a_copy_is_equal_and_shares_nothing_that_can_change(value):
    copied = objects.copy_of(value)
    assert copied == value
    if isinstance(value, dict | list) and value:
        assert copied is not value


def test_an_object_without_metadata_has_empty_names():
    assert objects.key_of({}) == ""
    assert objects.revision_of({"metadata": None}) == 0
    assert objects.labels_of({"metadata": {"labels": None}}) == {}


def test_keys_have_the_namespace_where_there_is_one():
    assert objects.key_of({"metadata": {"name": "a", "namespace": "b"}}) == "b/a"
    assert objects.key_of({"metadata": {"name": "a"}}) == "a"


@given(st.integers(0, 4_000_000_000))
def test_times_survive_the_way_to_text_and_back(seconds):
    assert objects.seconds_of(objects.time_text(seconds)) == seconds


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="zone"):
        objects.seconds_of("2026-11-15T06:32:19")


def test_the_controller_is_the_owner_that_says_so():
    owners = [{"name": "a"}, {"name": "b", "controller": True}]
    assert objects.controller_of({"metadata": {"ownerReferences": owners}}) == owners[1]
    assert objects.controller_of({"metadata": {}}) is None


def test_maps_are_found_by_the_text_that_tells_them_apart():
    assert objects.places_by_text([{"name": "b"}, {"name": "a"}], "name") == {"b": 0, "a": 1}
    for others in ([{"name": "a"}] * 2, [{"name": 1}], [{"id": "a"}], ["a"], [{"name": ["a"]}]):
        assert objects.places_by_text(others, "name") is None


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (1, 1),
        ("x" * 640, 11),
        ([1, 2, 3], 7),
        ({"a": [1, 2]}, 7),
        ([[], ()], 5),
        ({"a": {"b": "c"}}, 5),
    ],
)
def test_a_value_counts_what_is_within_it(value, size):
    assert objects.is_larger(value, size - 1)
    assert not objects.is_larger(value, size)
