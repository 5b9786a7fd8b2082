"""Sets of fields against plain sets of paths. [A7]"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.apply.field_sets import (
    canonical_set,
    difference,
    in_canonical_order,
    includes,
    intersection,
    is_member,
    path_text,
    paths,
    recursive_difference,
    union,
    within,
    without_itself,
)

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
PATHS = st.frozensets(st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple), max_size=8)


def built(members):
    """A set from its paths, the slow way."""
    root = {}
    for path in members:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return tidied(root)


def tidied(node):
    below = {key: tidied(inner) for key, inner in node.items() if key != "."}
    return {".": {}, **below} if below and "." in node else below


def members(fields):
    return frozenset(paths(fields))


@given(PATHS)
def test_a_set_has_the_paths_that_it_was_made_of(one):
    assert members(built(one)) == one


@given(PATHS, PATHS)
def test_union_difference_and_intersection_are_those_of_sets(one, two):
    a, b = built(one), built(two)
    before = repr((a, b))
    assert members(union(a, b)) == one | two
    assert union(a, b) == built(one | two)
    assert difference(a, b) == built(one - two)
    assert intersection(a, b) == built(one & two)
    assert repr((a, b)) == before


@given(PATHS, PATHS)
def test_a_set_includes_its_subsets_and_no_others(one, two):
    assert includes(built(one), built(two)) == (two <= one)
    assert includes(built(one | two), built(two))


@given(PATHS, PATHS)
def test_a_recursive_difference_takes_what_lies_below(one, two):
    left = {p for p in one if not any(p[: len(q)] == q for q in two)}
    assert recursive_difference(built(one), built(two)) == built(left)


@given(PATHS)
def test_a_set_survives_its_normal_form(one):
    assert canonical_set(built(one)) == built(one)


def test_keys_are_spelled_in_one_way():
    given_keys = {"f:ports": {'k:{"protocol": "TCP", "containerPort": 80}': {".": {}}}}
    assert canonical_set(given_keys) == {"f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {}}}


@pytest.mark.parametrize(
    "wrong",
    [[], {"x:a": {}}, {"f:a": 1}, {"k:[1]": {}}, {"k:{": {}}, {'i:"a"': {}}, {".": {"f:a": {}}}],
)
def test_what_is_no_set_is_refused(wrong):
    with pytest.raises(ValueError):  # noqa: PT011 (a JSON error is one too)
        canonical_set(wrong)


def test_a_set_of_any_depth_is_answered():
    deep = {}
    for _ in range(5000):
        deep = {"f:a": deep}
    with pytest.raises(ValueError, match="not too deep"):
        canonical_set(deep)


def test_paths_are_shown_as_upstream_shows_them():
    path = ("f:spec", "f:containers", 'k:{"name":"main"}', "f:ports",
            'k:{"containerPort":80,"protocol":"TCP"}', "f:x", 'v:"y"', "i:3")  # fmt: skip
    assert path_text(path) == (
        '.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"].x[="y"][3]'
    )


def test_members_and_what_is_below_them():
    assert is_member({})
    assert is_member({".": {}, "f:a": {}})
    assert not is_member({"f:a": {}})
    assert without_itself({".": {}, "f:a": {}}) == {"f:a": {}}


def test_within_patterns_are_what_they_lead_to_and_the_items_above():
    resized = {"f:spec": {"f:containers": {"*": {"f:resources": None}}}}
    item = {".": {}, "f:name": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}
    fields = {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:containers": {'k:{"name":"c"}': item}, "f:nodeName": {}},
    }
    kept = {".": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}
    assert within(fields, resized) == {"f:spec": {"f:containers": {'k:{"name":"c"}': kept}}}
    assert within({"f:spec": {"f:nodeName": {}}}, resized) == {}
    assert within(fields, {"f:metadata": None}) == {"f:metadata": {"f:labels": {"f:a": {}}}}


def test_a_set_is_one_text_however_it_came_about():
    """As upstream writes it: itself, names, keys, values, numbers."""
    mixed = {
        "i:10": {}, "i:9": {}, 'v:"b"': {}, 'k:{"name":"b"}': {"f:x": {}, ".": {}},
        "f:z": {}, 'k:{"name":"a"}': {}, "f:a": {"f:c": {}, "f:b": {}}, ".": {},
    }  # fmt: skip
    ordered = in_canonical_order(mixed)
    assert ordered == mixed
    assert list(ordered) == [
        ".", "f:a", "f:z", 'k:{"name":"a"}', 'k:{"name":"b"}', 'v:"b"', "i:9", "i:10",
    ]  # fmt: skip
    assert list(ordered["f:a"]) == ["f:b", "f:c"]
    assert list(ordered['k:{"name":"b"}']) == [".", "f:x"]
