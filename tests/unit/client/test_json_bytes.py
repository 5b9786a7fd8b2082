"""JSON for commands: the same from either library."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.client import json_bytes

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_values_come_back(value):
    try:
        expected = orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
    except TypeError:
        return  # half a character, which no server takes
    assert json_bytes.loads(json_bytes.dumps(value)) == expected


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"{" * json_bytes.LARGE_BYTES])
def test_what_is_no_json_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"."):
        json_bytes.loads(data)
