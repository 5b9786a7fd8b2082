"""Pruning and defaulting beside a naive reading of their rules."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.custom.pruning import compile_shape
from sampan.api.custom.structural import structural_of

NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.one_of(st.integers(0, 3), st.sampled_from(["x", "y"]), st.booleans())
LEAVES = st.one_of(
    st.just({"type": "string"}),
    st.fixed_dictionaries({"type": st.just("string"), "default": st.sampled_from(["x", "y"])}),
    st.just({"type": "integer", "nullable": True}),
    st.just({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(
            lambda fields: {"type": "object", "properties": fields}
        ),
        inner.map(lambda one: {"type": "array", "items": one}),
        inner.map(lambda one: {"type": "object", "additionalProperties": one}),
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.one_of(SCALARS, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


def naive(value, schema):
    """Default first, then prune, each in its own walk, as the rules are stated."""
    value = defaulted(copy.deepcopy(value), schema)
    return pruned(value, schema)


def defaulted(value, schema):
    if isinstance(value, dict):
        for key, one in (schema.get("properties") or {}).items():
            bare = key in value and value[key] is None and not one.get("nullable")
            if "default" in one and (key not in value or bare):
                value[key] = copy.deepcopy(one["default"])
            elif bare:
                del value[key]
            if key in value:
                value[key] = defaulted(value[key], one)
        other = schema.get("additionalProperties")
        if isinstance(other, dict):
            for key in [key for key in value if value[key] is None and not other.get("nullable")]:
                if "default" in other:
                    value[key] = copy.deepcopy(other["default"])
                else:
                    del value[key]
            for key in value:
                value[key] = defaulted(value[key], other)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        inner = schema["items"]
        filled = [
            copy.deepcopy(inner.get("default"))
            if one is None and not inner.get("nullable")
            else one
            for one in value
        ]
        return [defaulted(one, inner) for one in filled]
    return value


def pruned(value, schema):
    if schema is None or not schema.get("x-kubernetes-preserve-unknown-fields"):
        if isinstance(value, dict):
            fields = (schema or {}).get("properties") or {}
            other = (schema or {}).get("additionalProperties")
            return {
                key: pruned(one, fields.get(key, other))
                for key, one in value.items()
                if key in fields or other is not None
            }
        if isinstance(value, list):
            return [pruned(one, (schema or {}).get("items")) for one in value]
    return value


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, VALUES)
@pytest.mark.slow
def test_an_object_is_shaped_as_the_rules_say(schema, value):
    whole = {"type": "object", "properties": {"spec": schema}}
    given_object = {"apiVersion": "v1", "kind": "X", "metadata": {}, "spec": value}
    before = copy.deepcopy(given_object)
    shape = compile_shape(structural_of(whole))
    found = shape(given_object, (), [])
    assert given_object == before, "what came in was changed"
    wanted = naive({"spec": value}, whole)
    assert {key: one for key, one in found.items() if key == "spec"} == wanted
    assert shape(found, (), []) == found, "what came out goes through unchanged"


def test_unknown_fields_are_named_by_their_paths():
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"l": {"type": "array", "items": {"type": "object"}}},
            }
        },
    }
    unknown = []
    shape = compile_shape(structural_of(schema))
    shape({"spec": {"l": [{"a": 1}], "z": 1}, "more": 1}, (), unknown)
    assert unknown == [(((((((), "spec")), "l")), 0), "a"), (((), "spec"), "z"), ((), "more")]
