"""Values checked, merged, named and taken apart, on real kinds and on made-up ones. [A7]"""

import pytest
from hypothesis import given

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_sets import paths, union
from sampan.api.apply.field_types import compare
from sampan.api.apply.typed_values import MISSING, atomics, less, merged, problems, set_of
from sampan.api.schema.published import Schema
from tests.support.generators.owned_values import OBJECTS, WORLD

POD = FieldSchema(Schema.load()).root("v1", "Pod")


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_merging_keeps_the_live_object_and_takes_all_of_the_configuration(live, config):
    before = repr((live, config))
    together = merged(WORLD, live, config)
    if together is MISSING:
        assert (live, config) == ({}, {})
        return
    assert repr((live, config)) == before
    assert compare(WORLD, together, merged(WORLD, together, config)) == ({}, {})
    both = union(set_of(WORLD, live), set_of(WORLD, config))
    assert set(paths(both)) <= set(paths(WORLD.named(both)))
    assert set_of(WORLD, together) == both or {} in _containers(live, config)


def _containers(*objs):
    """All maps inside: an empty one is spoken for as long as nobody fills it."""
    found = []
    waiting = list(objs)
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found.append(one)
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return found


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_what_is_taken_away_is_not_there_any_more(obj, part):
    going = WORLD.named(set_of(WORLD, part))
    left = less(WORLD, obj, going)
    told = set(paths(set_of(WORLD, left))) & set(paths(going))
    assert all(_at(left, path) is None for path in told)  # null is spoken for
    assert less(WORLD, obj, {}) == {key: one for key, one in obj.items()}  # noqa: C416


def _at(value, path):
    for label in path:
        value = value[label[2:]]
    return value


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        ("abc", "b", "abc"),
        ("abc", "d", "abcd"),
        ("abc", "ca", "bca"),
        ("ab", "ba", "ba"),
        ("bax", "abc", "axbc"),
        ("abx", "bac", "bxac"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
        ("xay", "bac", "xbayc"),
    ],
)
def test_the_order_of_merged_lists(live, config, result):
    """The configuration's order wins among its own; the others stay where they were."""
    live, config = ({"items": [{"name": one} for one in names]} for names in (live, config))
    found = merged(WORLD, live, config)["items"]
    assert "".join(one["name"] for one in found) == result


def pod(**container):
    return {"spec": {"containers": [{"name": "main", **container}]}}


def test_a_key_that_may_be_left_out_has_its_default():
    one = pod(ports=[{"containerPort": 80}])
    two = pod(ports=[{"containerPort": 80, "protocol": "TCP"}])
    together = merged(POD, two, one)
    assert together["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_what_cannot_be_merged_is_named():
    twice = pod(ports=[{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}])
    assert list(problems(POD, twice)) == [
        '.spec.containers[name="main"].ports: duplicate entries for key '
        '[containerPort=1,protocol="TCP"]'
    ]
    nameless = {"spec": {"containers": [{"image": "a"}]}}
    assert list(problems(POD, nameless)) == []  # the empty name is refused when it is validated


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"spec": None, "metadata": {"labels": None}}, []),
        ({"spec": []}, [".spec: expected map, got &{[]}"]),
        ({"spec": {"containers": None}}, []),
        ({"spec": {"containers": {}}}, [".spec.containers: expected list, got &{map[]}"]),
        ({"spec": {"containers": [None]}},
         [".spec.containers: element 0: associative list with keys may not have a null element"]),
        ({"metadata": {"finalizers": [None]}},
         [".metadata.finalizers: element 0: associative list without keys has an element that's an "
          "explicit null"]),
        ({"spec": {"nodeName": 7}},
         [".spec.nodeName: expected string, got &value.valueUnstructured{Value:7}"]),
        ({"spec": {"hostNetwork": "x"}}, [".spec.hostNetwork: expected boolean, got &{x}"]),
        ({"spec": {"priority": []}},
         [".spec.priority: expected numeric (int or float), got []interface {}"]),
        (pod(command=["a", 1]),
         ['.spec.containers[name="main"].command[1]: expected string, got '
          "&value.valueUnstructured{Value:1}"]),
        ({"spec": {"other": 1}}, [".spec.other: field not declared in schema"]),
    ],
)  # fmt: skip
def test_what_is_of_another_type_is_named_and_null_is_not(config, why):
    assert list(problems(POD, config)) == why


@pytest.mark.parametrize(
    ("live", "config", "together", "spoken_for"),
    [
        ({"values": ["a"]}, {"values": None}, {"values": ["a"]}, {"f:values": {}}),
        ({"values": ["a"]}, {"values": []}, {"values": ["a"]}, {}),
        ({}, {"values": []}, {"values": []}, {}),
        ({}, {"values": None}, {"values": None}, {"f:values": {}}),
        ({"values": []}, {"values": None}, {"values": None}, {"f:values": {}}),
        ({"optional": {"x": "1"}}, {"optional": None}, {"optional": {"x": "1"}},
         {"f:optional": {}}),
        ({"optional": {"x": "1"}}, {"optional": {}}, {"optional": {"x": "1"}}, {"f:optional": {}}),
        ({"atoms": ["1"]}, {"atoms": None}, {"atoms": None}, {"f:atoms": {}}),
        ({"scalar": "1"}, {"scalar": None}, {"scalar": None}, {"f:scalar": {}}),
        ({"labels": {"a": "1"}}, {"labels": {"a": None}}, {"labels": {"a": None}},
         {"f:labels": {"f:a": {}}}),
        ({"items": [{"name": "a", "value": "1"}]}, {"items": [{"name": "a", "value": None}]},
         {"items": [{"name": "a", "value": None}]},
         {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:value": {}}}}),
    ],
)  # fmt: skip
def test_null_is_no_item_and_a_field_all_the_same(live, config, together, spoken_for):
    """Go's nil slices and maps: they take nothing away from others, and claim the field."""
    assert merged(WORLD, live, config) == together
    assert set_of(WORLD, config) == spoken_for


def test_what_loses_its_last_item_is_null():
    live = {"values": ["a"], "labels": {"a": "1"}, "atoms": ["1"]}
    going = {"f:values": {'v:"a"': {}}, "f:labels": {"f:a": {}}, "f:atoms": {"v:1": {}}}
    assert less(WORLD, live, going) == {"values": None, "labels": None, "atoms": None}


def test_lists_and_maps_that_would_be_replaced_are_named():
    config = {"atoms": ["1"], "items": [{"name": "a"}], "labels": {"a": "1"}, "scalar": "1"}
    assert list(atomics(WORLD, config)) == [".atoms"]
