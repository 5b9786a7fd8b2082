"""Single values in protobuf's wire form. [A11]"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.protobuf import values
from sampan.api.protobuf.values import ProtobufError
from sampan.api.schema.field_kinds import Type


def encoded(number):
    number &= 2**64 - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_a_number_ends_where_it_ends(number, rest):
    data = encoded(number)
    assert values.varint(data + rest, 0) == (number, len(data))


def test_a_number_of_too_many_bytes_is_refused():
    with pytest.raises(ProtobufError, match="overflow"):
        values.varint(b"\xff" * 11, 0)


@pytest.mark.parametrize(
    ("bits", "number", "read"),
    [("int32", -1, -1), ("int32", 2**31, -(2**31)), ("int64", -1, -1), ("int64", 2**31, 2**31)],
)
def test_numbers_have_a_sign_at_their_width(bits, number, read):
    wire, value = values.scalar(Type("integer", format=bits))
    assert wire == values.VARINT
    assert value(b"", values.varint(encoded(number), 0)[0], 0, 0) == read


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"", 0),
        (b"\x08\x00\x10\x50\x1a\x00", 80),
        (b"\x08\x00\x10" + encoded(-1), -1),
        (b"\x08\x01\x10\x00\x1a\x04http", "http"),
    ],
)
def test_int_or_string(data, read):
    _, value = values.scalar(Type("string", format="int-or-string"))
    assert value(data, 0, len(data), 0) == read


def test_a_quantity_without_text_is_zero():
    _, value = values.scalar(Type("string", format="quantity"))
    assert value(b"", 0, 0, 0) == "0"


def test_what_is_longer_than_its_message_is_refused():
    for data in (b"\x0a\x05ab", b"\x09abc", b"\x0d", b"\x08\xff\x01"):
        with pytest.raises((ProtobufError, IndexError)):
            values.plain_fields(data, 0, 2)


@pytest.mark.parametrize("tag", [0x0B, 0x0C, 0x0E, 0x0F])
def test_groups_and_unknown_wire_types_are_refused(tag):
    with pytest.raises(ProtobufError, match="wire type"):
        values.plain_fields(bytes([tag, 0]), 0, 2)


@pytest.mark.parametrize("bits", [0x7FF0000000000000, 0x7FF8000000000001])
def test_numbers_that_json_does_not_have_are_refused(bits):
    _, value = values.scalar(Type("number"))
    with pytest.raises(ProtobufError, match="not finite"):
        value(bits.to_bytes(8, "little"), 0, 8, 0)
