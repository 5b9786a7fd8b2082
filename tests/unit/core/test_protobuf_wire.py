"""Protobuf's wire format without descriptors."""

from google.protobuf.internal.encoder import _VarintBytes
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.protobuf_wire import bytes_field, varint, varint_field


@given(st.integers(0, (1 << 64) - 1))
def test_numbers_are_as_the_official_library_writes_them(number):
    assert varint(number) == _VarintBytes(number)


def test_fields_have_their_number_and_kind_before_them():
    assert varint_field(1, 150) == b"\x08\x96\x01"  # the example of protobuf's own documentation
    assert bytes_field(2, b"testing") == b"\x12\x07testing"
