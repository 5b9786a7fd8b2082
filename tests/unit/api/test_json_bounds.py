import orjson
import pytest

from sampan.api.json_bounds import MOST_BRACKETS, MOST_FIELDS, MOST_VALUES, has_too_many_values


@pytest.mark.parametrize("value", [
    [[]] * (MOST_BRACKETS + 1), [{}] * (MOST_BRACKETS + 1),
    {str(number): 1 for number in range(MOST_FIELDS + 1)},
    [{"a": {"b": ""}}] * MOST_BRACKETS,
    {"many": ["[", "{"] * MOST_FIELDS},
    [12345] * (MOST_VALUES + 2), ["ab"] * (MOST_VALUES + 2),
])  # fmt: skip
def test_too_many_lists_objects_fields_and_values(value):
    assert has_too_many_values(orjson.dumps(value))


@pytest.mark.parametrize("value", [
    {"data": {"a": "[{:" * 900_000}},
    {"data": {"a": orjson.dumps([{"a": "\\"}] * 90_000).decode()}},
    {"data": {str(number): "[" for number in range(20_000)}},
    [{"a": 1}] * 40_000,
    [1] * (MOST_VALUES + 2),
    {"data": {"a": "a,b," * (MOST_VALUES + 2)}},
])  # fmt: skip
def test_texts_may_have_what_they_like(value):
    assert not has_too_many_values(orjson.dumps(value))
