"""The schema compiler gives the verdict of an independent JSON-schema validator."""

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.custom.value_validation import check_value, compile_checks, field_errors

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.text(alphabet="abxé", max_size=5)
NUMBERS = st.integers(-5, 12)


def limits(**fields):
    return st.fixed_dictionaries({}, optional=fields)


STRINGS = limits(
    minLength=st.integers(0, 3), maxLength=st.integers(0, 4),
    pattern=st.sampled_from(["^a", "b$", "x", "^[ab]+$"]),
    enum=st.lists(TEXTS, min_size=1, max_size=3),
).map(lambda more: {"type": "string", **more})  # fmt: skip
INTEGERS = limits(
    minimum=NUMBERS, maximum=NUMBERS, multipleOf=st.integers(1, 4),
    enum=st.lists(NUMBERS, min_size=1, max_size=3),
).map(lambda more: {"type": "integer", **more})  # fmt: skip
FLAGS = st.just({"type": "boolean"})
COUNTS = st.integers(0, 3)


def arrays(inner):
    return st.tuples(inner, limits(minItems=COUNTS, maxItems=COUNTS)).map(
        lambda pair: {"type": "array", "items": pair[0], **pair[1]}
    )


def objects(inner):
    fields = st.dictionaries(NAMES, inner, max_size=3)
    more = limits(
        required=st.lists(NAMES, unique=True, max_size=2), minProperties=COUNTS,
        maxProperties=COUNTS,
    )  # fmt: skip
    return st.tuples(fields, more).map(
        lambda pair: {"type": "object", "properties": pair[0], **pair[1]}
    )


def maps(inner):
    return inner.map(lambda one: {"type": "object", "additionalProperties": one})


TEXT_LOGIC = st.lists(
    st.one_of(
        limits(minLength=st.integers(0, 3)),
        st.fixed_dictionaries({"pattern": st.sampled_from(["^a", "x"])}),
    ),
    min_size=1, max_size=3,
)  # fmt: skip
LOGIC = st.tuples(STRINGS, st.sampled_from(["allOf", "anyOf", "oneOf"]), TEXT_LOGIC).map(
    lambda three: {**three[0], three[1]: three[2]}
)
NEGATED = st.tuples(STRINGS, TEXT_LOGIC).map(lambda pair: {**pair[0], "not": pair[1][0]})
SCHEMAS = st.recursive(
    st.one_of(STRINGS, INTEGERS, FLAGS, LOGIC, NEGATED),
    lambda inner: st.one_of(arrays(inner), objects(inner), maps(inner)),
    max_leaves=6,
)
VALUES = st.recursive(
    st.one_of(TEXTS, NUMBERS, st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, VALUES)
@pytest.mark.slow
def test_the_verdict_is_that_of_another_validator(schema, value):
    found = check_value(compile_checks(schema), value)
    judge = jsonschema.Draft4Validator(schema)
    assert (found == []) == judge.is_valid(value), (
        field_errors(found),
        list(judge.iter_errors(value)),
    )


@settings(max_examples=100, deadline=None)
@given(SCHEMAS, VALUES)
@pytest.mark.slow
def test_what_did_not_change_is_not_complained_about(schema, value):
    assert check_value(compile_checks(schema), value, value) == []


TYPE = 'a: Invalid value: "10.0.0.256": a in body must be of type'
BOOL = 'a: Invalid value: "boolean": a in body must be of type'
FORBIDDEN = 'a.b: Invalid value: "": a.b in body is a forbidden property'


@pytest.mark.parametrize(
    ("schema", "value", "causes"),
    [
        ({"type": "string", "format": "date-time"}, "2026-11-15T10:00:00Z", []),
        ({"type": "string", "format": "ipv4"}, "10.0.0.256", [f'{TYPE} ipv4: "10.0.0.256"']),
        ({"type": "string", "format": "nobody-knows"}, "x", []),
        ({"type": "number", "multipleOf": 0.1}, 0.3, []),
        ({"type": "integer"}, 1.0, []),
        ({"x-kubernetes-int-or-string": True}, True, [f'{BOOL} integer,string: "boolean"']),
        ({"type": "object", "additionalProperties": False}, {"b": 1}, [FORBIDDEN]),
    ],
)
def test_causes_are_worded_as_upstream_words_them(schema, value, causes):
    check = compile_checks({"type": "object", "properties": {"a": schema}})
    assert [str(one) for one in field_errors(check_value(check, {"a": value}))] == causes


def test_items_of_a_list_map_are_compared_by_their_keys():
    fields = {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}
    item = {"type": "object", "properties": fields}
    schema = {
        "type": "array", "items": item, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }  # fmt: skip
    check = compile_checks(schema)
    old = [{"k": "a", "v": "long"}, {"k": "b", "v": "long"}]
    assert check_value(check, list(reversed(old)), old) == []
    changed = [{"k": "b", "v": "longer"}, {"k": "a", "v": "long"}]
    assert [one.path for one in check_value(check, changed, old)] == [((((), 0)), "v")]
