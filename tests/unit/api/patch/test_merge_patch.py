"""RFC 7386."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.errors import BadRequest
from sampan.api.objects import copy_of
from sampan.api.patch.merge_patch import merge_patch, merge_patch_between

KEYS = st.sampled_from("abc")
LEAVES = st.integers(0, 3) | st.sampled_from(["x", ""]) | st.lists(st.integers(0, 2), max_size=2)
OBJECTS = st.recursive(
    st.dictionaries(KEYS, LEAVES, max_size=3),
    lambda inner: st.dictionaries(KEYS, LEAVES | inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_standard(document, patch, result):
    """[A7]"""
    assert merge_patch(document, patch) == result


@given(OBJECTS, OBJECTS)
def test_the_patch_between_two_objects_leads_from_one_to_the_other(before, after):
    untouched = copy_of(before)
    patch = merge_patch_between(before, after)
    assert merge_patch(before, patch) == after
    assert before == untouched
    assert (patch == {}) == (before == after)


def test_what_is_no_object_is_no_patch():
    with pytest.raises(BadRequest):
        merge_patch({}, [])
