"""JSON as Go reads it; the expected words are Go's."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api import json_reading
from sampan.api.go_text import go_json


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "unexpected end of JSON input"),
        (b"[", "unexpected end of JSON input"),
        (b'{"a":', "unexpected end of JSON input"),
        (b'"abc', "unexpected end of JSON input"),
        (b"tru", "invalid character ' ' in literal true (expecting 'e')"),
        (b"nulx", "invalid character 'x' in literal null (expecting 'l')"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 2}', "invalid character '2' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"01", "invalid character '1' after top-level value"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b"-", "invalid character ' ' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1e+", "invalid character ' ' in exponent of numeric literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        (b'"\x01"', "invalid character '\\x01' in string literal"),
        (b"'", "invalid character '\\'' looking for beginning of value"),
        (b"\xc3", "invalid character '\u00c3' looking for beginning of value"),
        (b"[" * 10_001, "exceeded max depth"),
    ],
)
def test_what_is_no_json_is_refused_in_gos_words(text, why):
    assert json_reading.complaint(text) == why
    with pytest.raises(ValueError, match=re.escape(why)) as caught:
        json_reading.loads(text)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'"\\ud800x"', "\ufffdx"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\xff\xfe"', "\ufffd\ufffd"),
        (b'{"\xe2\x80":1}', {"\ufffd\ufffd": 1}),
        (b" [1 , -0, 1E2] ", [1, 0, 100]),
        (b"123456789012345678901234567890", 1.2345678901234568e29),
    ],
)
def test_what_only_go_takes_is_read_as_go_reads_it(text, value):
    assert json_reading.loads(text) == value


@pytest.mark.parametrize("depth", [600, 990, 2_000, 100_000])
def test_what_is_nested_too_deep_is_refused_whatever_else_is_odd_about_it(depth):
    with pytest.raises(ValueError, match="max depth"):
        json_reading.loads(b'{"a":' * depth + b'"\\ud800"' + b"}" * depth)


def test_a_number_beyond_all_numbers_is_refused():
    with pytest.raises(ValueError, match="cannot unmarshal number 1e400 into Go value"):
        json_reading.loads(b"[1e400]")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_what_was_written_is_read_again(value):
    assert json_reading.loads(go_json(value).encode()) == value
    assert json_reading.complaint(go_json(value).encode()) == ""


@given(st.binary(max_size=20))
def test_a_text_is_read_or_complained_about(text):
    try:
        json_reading.loads(text)
    except ValueError as error:
        assert str(error) == json_reading.complaint(text)  # noqa: PT017
