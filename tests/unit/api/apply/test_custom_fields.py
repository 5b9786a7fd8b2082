"""The fields of custom kinds are owned and merged as those of built-in ones with the same types."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.apply.custom_fields import custom_root
from sampan.api.apply.field_types import STRING, KeyedList, Leaf, Map, Struct, compare
from sampan.api.apply.typed_values import less, merged, problems, set_of
from sampan.api.custom.structural import structural_of

TEXT = {"type": "string"}
LABELS = {"type": "object", "additionalProperties": TEXT}
INNER = {"type": "object", "properties": {"x": TEXT, "labels": LABELS}}
ITEM = {
    "type": "object", "required": ["name"],
    "properties": {
        "name": TEXT, "value": TEXT, "inner": INNER,
        "nested": {
            "type": "array", "items": TEXT, "x-kubernetes-list-type": "set",
        },
    },
}  # fmt: skip
SCHEMA = {
    "type": "object",
    "properties": {
        "scalar": TEXT,
        "labels": LABELS,
        "inner": INNER,
        "structs": {"type": "object", "additionalProperties": INNER},
        "items": {
            "type": "array", "items": ITEM, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "values": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "atoms": {"type": "array", "items": TEXT},
        "whole": {**INNER, "x-kubernetes-map-type": "atomic"},
    },
}  # fmt: skip


def struct(**fields):
    made = Struct(frozenset())
    for key, node in fields.items():
        made.add(key, node)
    return made


def oracle():
    inner = struct(x=STRING, labels=Map(STRING))
    texts = KeyedList(STRING)
    item = struct(name=STRING, value=STRING, inner=inner, nested=texts)
    return struct(
        scalar=STRING, labels=Map(STRING), inner=inner, structs=Map(inner),
        items=KeyedList(item, ("name",)), values=texts, atoms=Leaf("list", STRING),
        whole=Leaf("map", inner),
    )  # fmt: skip


BUILT_IN = oracle()
CUSTOM = custom_root(structural_of(SCHEMA), STRING)
KEYS, SCALARS = st.sampled_from("abc"), st.sampled_from("123")
MAPS = st.dictionaries(KEYS, SCALARS, max_size=3)
TEXTS = st.lists(KEYS, unique=True, max_size=3)


def some(**fields):
    return st.fixed_dictionaries({}, optional=fields)


INNERS = some(x=SCALARS, labels=MAPS)
ITEMS = TEXTS.flatmap(
    lambda names: st.tuples(
        *(
            some(value=SCALARS, inner=INNERS, nested=TEXTS).map(
                lambda more, name=name: {"name": name, **more}
            )
            for name in names
        )
    ).map(list)
)
OBJECTS = some(
    scalar=SCALARS, labels=MAPS, inner=INNERS, structs=st.dictionaries(KEYS, INNERS, max_size=2),
    items=ITEMS, values=TEXTS, atoms=TEXTS, whole=INNERS,
)  # fmt: skip


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_they_differ_merge_and_speak_alike(one, two):
    assert compare(CUSTOM, one, two) == compare(BUILT_IN, one, two)
    assert merged(CUSTOM, one, two) == merged(BUILT_IN, one, two)
    assert set_of(CUSTOM, one) == set_of(BUILT_IN, one)


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_they_lose_fields_alike(obj, part):
    going = BUILT_IN.named(set_of(BUILT_IN, part))
    assert CUSTOM.named(set_of(CUSTOM, part)) == going
    assert less(CUSTOM, obj, going) == less(BUILT_IN, obj, going)


@pytest.mark.slow
@given(OBJECTS)
def test_what_fits_the_schema_can_be_merged(obj):
    assert list(problems(CUSTOM, obj)) == list(problems(BUILT_IN, obj)) == []


def test_what_is_not_declared_and_what_is_there_twice_are_named():
    twice = {"items": [{"name": "a"}, {"name": "a"}], "other": 1}
    assert list(problems(CUSTOM, twice)) == [
        '.items: duplicate entries for key [name="a"]',
        ".other: field not declared in schema",
    ]


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        ({"x-kubernetes-preserve-unknown-fields": True, "type": "object",
          "properties": {"in": {"type": "object", "properties": {"a": TEXT}}}},
         {"in": {"a": "x", "other": [1]}}, []),  # all the way down
        ({"type": "object"}, {"anything": {"goes": 1}}, []),
        ({"type": "object", "properties": {"a": TEXT}}, {"b": 1},
         [".v.b: field not declared in schema"]),
        ({"type": "object", "additionalProperties": False}, {"b": 1},
         [".v.b: field not declared in schema"]),
        ({"type": "string", "format": "date-time"}, 5, []),
        ({"type": "string", "format": "date-time"}, [], [".v: expected any scalar, got &{[]}"]),
        ({"x-kubernetes-int-or-string": True}, [], []),  # refused when it is validated
        ({"type": "array", "items": {"type": "integer"}}, ["x"],
         [".v[0]: expected numeric (int or float), got string"]),
    ],
)  # fmt: skip
def test_what_a_schema_lets_pass(schema, value, why):
    root = custom_root(structural_of({"type": "object", "properties": {"v": schema}}), STRING)
    assert list(problems(root, {"v": value})) == why
