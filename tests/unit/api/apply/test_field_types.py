"""Values compared, on real kinds and on made-up ones. [A7]"""

import pytest
from hypothesis import given

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_sets import difference, in_canonical_order, paths
from sampan.api.apply.field_types import DEDUCED, compare
from sampan.api.schema.published import Schema
from tests.support.generators.owned_values import OBJECTS, WORLD

POD = FieldSchema(Schema.load()).root("v1", "Pod")


def everything(obj):
    return compare(WORLD, {}, obj)[0]


@given(OBJECTS)
def test_a_value_does_not_differ_from_itself(obj):
    assert compare(WORLD, obj, obj) == ({}, {})


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_what_one_way_removes_the_other_way_adds(one, two):
    there, back = compare(WORLD, one, two), compare(WORLD, two, one)
    assert set(paths(there[1])) <= set(paths(back[0]))


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_what_differs_is_told_in_canonical_order(one, two):
    for found in compare(WORLD, one, two):
        assert repr(found) == repr(in_canonical_order(found))


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_what_is_not_changed_is_the_same_in_both(old, new):
    changed, removed = compare(WORLD, old, new)
    same = set(paths(difference(everything(new), changed)))
    assert same <= set(paths(everything(old)))
    assert not set(paths(removed)) & set(paths(everything(new)))


def pod(**container):
    return {"spec": {"containers": [{"name": "main", **container}]}}


def test_a_new_pod_is_owned_as_upstream_shows_it():
    """Containers are always there in Go, volumes are not: only the latter are `.` themselves."""
    new = pod(image="a", resources={}, ports=[{"containerPort": 80, "protocol": "TCP"}])
    new["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    assert compare(POD, {}, new)[0] == {
        "f:spec": {
            "f:containers": {
                'k:{"name":"main"}': {
                    ".": {},
                    "f:name": {},
                    "f:image": {},
                    "f:resources": {},
                    "f:ports": {
                        ".": {},
                        'k:{"containerPort":80,"protocol":"TCP"}': {
                            ".": {}, "f:containerPort": {}, "f:protocol": {},
                        },
                    },
                }
            },
            "f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}, "f:name": {}, "f:emptyDir": {}}},
        }
    }  # fmt: skip


def test_duplicates_of_old_objects_are_compared_as_a_whole():
    old = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]}}
    new = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "a", "image": "3"}]}}
    assert compare(POD, old, new)[0] == {"f:spec": {"f:containers": {'k:{"name":"a"}': {}}}}


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        ({"values": ["a"]}, {"values": None}, {}, {"f:values": {'v:"a"': {}}}),
        ({"values": None}, {"values": ["a"]}, {"f:values": {'v:"a"': {}}}, {}),
        ({"values": []}, {"values": None}, {"f:values": {}}, {}),
        ({}, {"values": None}, {"f:values": {}}, {}),
        ({"values": None}, {}, {}, {"f:values": {}}),
        ({"optional": {"x": "1"}}, {"optional": None}, {}, {"f:optional": {"f:x": {}}}),
        ({"atoms": ["1"]}, {"atoms": None}, {"f:atoms": {}}, {}),
        ({"scalar": "1"}, {"scalar": None}, {"f:scalar": {}}, {}),
    ],
)
def test_null_is_a_value_that_is_there(old, new, changed, removed):
    """As upstream: what is below goes, but the field does not."""
    assert compare(WORLD, old, new) == (changed, removed)


@pytest.mark.parametrize(
    ("old", "new", "sets"),
    [
        ({"a": 1}, 5, ({}, {"f:a": {}})),
        (5, {"a": 1}, ({".": {}, "f:a": {}}, None)),
        ([1], [2], ({}, None)),
        ({"a": 1}, None, (None, {"f:a": {}})),
        (None, {"a": 1}, ({"f:a": {}}, None)),
        (1, None, ({}, None)),
    ],
)
def test_what_no_schema_speaks_of_is_compared_as_what_it_is(old, new, sets):
    found = tuple(None if one == {".": {".": {}}} else one for one in DEDUCED.compare(old, new))
    assert found == sets
