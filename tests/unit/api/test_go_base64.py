"""Base64 as Go reads it. Positions: recorded from kubectl v1.35.8 (`config set … -data TEXT`)."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.go_base64 import decoded


@given(st.binary(max_size=50))
def test_what_was_encoded_is_decoded(data):
    assert decoded(base64.b64encode(data).decode()) == data


def test_line_ends_are_skipped():
    assert decoded("Zm9\r\nv\n") == b"foo"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("nobase64!", 8), ("foo", 0), ("bad!", 3), ("Zm9vYg", 4), ("Zm9vYg=", 7), ("Z=", 1),
        ("=", 0), ("Zm9v=", 4), ("Zm8=x", 4), ("Zg=x", 2), ("Zg==Zg==", 4), ("!!", 0), ("Zm 9v", 2),
    ],
)  # fmt: skip
def test_the_byte_at_which_it_is_none(text, place):
    with pytest.raises(ValueError, match=f"illegal base64 data at input byte {place}$"):
        decoded(text)
