"""What is said to be sound is left alone by every other walk over the schema."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sampan.api.custom.list_types import compile_duplicates
from sampan.api.custom.pruning import compile_shape
from sampan.api.custom.soundness import compile_soundness
from sampan.api.custom.structural import structural_of
from sampan.api.custom.value_validation import check_value, compile_checks

NAMES = st.sampled_from(["a", "b", "metadata", "it's \\ odd"])
TEXT, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
KEEPS = {"x-kubernetes-preserve-unknown-fields": True}
LEAVES = st.sampled_from([
    TEXT, INTEGER, NUMBER, {"type": "boolean"},
    {**TEXT, "default": "x"}, {**TEXT, "nullable": True}, {**TEXT, "enum": ["x", "y"]},
    {**TEXT, "nullable": True, "default": "y"},
    {**TEXT, "maxLength": 2, "minLength": 1, "pattern": "^[a-y]+$"}, {**TEXT, "format": "ipv4"},
    {**INTEGER, "minimum": 1, "maximum": 2}, {**INTEGER, "multipleOf": 2},
    {**INTEGER, "enum": [1, 2]}, {**NUMBER, "maximum": 2, "exclusiveMaximum": True},
    {**INTEGER, "not": {"enum": [0]}}, {"x-kubernetes-int-or-string": True},
    {"x-kubernetes-int-or-string": True, "anyOf": [INTEGER, TEXT], "pattern": "^x"},
    KEEPS, {"type": "object", **KEEPS}, {"type": "object"},
    {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    {"type": "array", "items": INTEGER, "x-kubernetes-list-type": "set"},
    {"type": "object", "x-kubernetes-embedded-resource": True, **KEEPS},
])  # fmt: skip


def objects(inner):
    more = st.fixed_dictionaries(
        {},
        optional={
            "required": st.lists(NAMES, max_size=2, unique=True),
            "minProperties": st.just(1),
            "maxProperties": st.just(1),
            "nullable": st.just(True),
            "x-kubernetes-preserve-unknown-fields": st.just(True),
        },
    )
    fields = st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    return st.builds(
        lambda fields, more: {"type": "object", "properties": fields, **more}, fields, more
    )


def lists(inner):
    more = st.fixed_dictionaries({}, optional={"minItems": st.just(1), "maxItems": st.just(1)})
    plain = st.builds(lambda items, more: {"type": "array", "items": items, **more}, inner, more)
    return plain | inner.map(keyed)


def keyed(inner):
    items = {"type": "object", "required": ["a"], "properties": {"a": TEXT, "b": inner}}
    kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}
    return {"type": "array", "items": items, **kind}


SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        objects(inner), lists(inner),
        inner.map(lambda values: {"type": "object", "additionalProperties": values}),
    ),
    max_leaves=5,
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.sampled_from([0, 1, 2, 2**63, 1.0, 1.5]),
    st.sampled_from(["", "x", "y", "z", "xyz", "10.0.0.1"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


def fitting(schema):
    """Values that have a chance."""
    if "properties" in schema:
        fields = {key: fitting(prop) for key, prop in schema["properties"].items()}
        return st.fixed_dictionaries({}, optional=fields)
    if isinstance(schema.get("additionalProperties"), dict):
        return st.dictionaries(NAMES, fitting(schema["additionalProperties"]), max_size=2)
    if "items" in schema:
        return st.lists(fitting(schema["items"]), max_size=3)
    by_type = {
        "string": st.sampled_from(["x", "y", "10.0.0.1"]), "integer": st.integers(0, 2),
        "number": st.sampled_from([1, 1.5, 1.0]), "boolean": st.booleans(),
    }  # fmt: skip
    return by_type.get(schema.get("type"), VALUES)


@st.composite
def schemas_and_values(draw):
    inner = draw(SCHEMAS)
    value = draw(fitting(inner) | VALUES)
    schema = {"type": "object", "properties": {"spec": inner}}
    return schema, {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "spec": value}


def same(one, two):
    """Also in the kind of its numbers."""
    return repr(one) == repr(two)


def is_left_alone(schema, value):
    root = structural_of(schema)
    unknown = []
    kept = compile_shape(root)(value, (), unknown)
    errors = []
    duplicates = compile_duplicates(root)
    if duplicates is not None:
        duplicates(value, "", errors)
    problems = check_value(compile_checks(schema), value)
    return not unknown and not errors and not problems and same(kept, value)


@settings(max_examples=400, deadline=None)
@given(schemas_and_values())
@example(({"type": "object"}, {"spec": 1}))
def test_what_is_sound_is_left_alone(drawn):
    schema, value = drawn
    if compile_soundness(structural_of(schema))(value):
        assert is_left_alone(schema, value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (TEXT, "x", 1),
        ({**TEXT, "pattern": "^a+$"}, "aa", "ab"),
        ({**INTEGER, "minimum": 1}, 1, 0),
        (INTEGER, 2**63 - 1, 2**63),
        (NUMBER, 1.5, 1.0),
        (keyed(TEXT), [{"a": "x"}, {"a": "y"}], [{"a": "x"}, {"a": "x"}]),
        ({"type": "object", "additionalProperties": TEXT}, {"k": "v"}, {"k": None}),
        ({"type": "object", **KEEPS}, {"deep": [{"n": 1}]}, {"deep": [{"n": 1.0}]}),
        ({"type": "object", "properties": {"a": TEXT}}, {}, {"b": "x"}),
    ],
)
def test_by_example(schema, good, bad):
    test = compile_soundness(structural_of({"type": "object", "properties": {"spec": schema}}))
    head = {"apiVersion": "g/v1", "kind": "K", "metadata": {}}
    assert test({**head, "spec": good})
    assert not test({**head, "spec": bad})


def test_names_become_texts_never_code():
    name = 'a\') or True #\n"""\\'
    schema = {"type": "object", "properties": {name: TEXT}, "required": [name]}
    test = compile_soundness(structural_of(schema))
    assert test({name: "x"})
    assert not test({name: 1})
    assert not test({})


def test_writing_for_one_value_is_bounded():
    """What is not written yet is not sound yet; a few values later it is."""
    deep = {"type": "object", "properties": {"a": TEXT}}
    schema = {
        "type": "object",
        "properties": {
            f"p{at}": {"type": "object", "properties": {"in": deep}} for at in range(300)
        },
    }
    test = compile_soundness(structural_of(schema))
    value = {f"p{at}": {"in": {"a": "x"}} for at in range(300)}
    assert not test(value)
    assert any(test(value) for _ in range(10))
    wide = {"type": "object", "properties": {f"p{at}": TEXT for at in range(1000)}}
    test = compile_soundness(structural_of(wide))
    assert not any(test({"p1": "x"}) for _ in range(10))
