from hypothesis import given
from hypothesis import strategies as st

from sampan.network.nftables.attributes import attribute, children, message, nested_attribute, split

DATA = st.binary(max_size=40)


@given(st.lists(st.tuples(st.integers(1, 0x3FFF), DATA)))
def test_attributes_read_back_in_order(pairs):
    written = b"".join(attribute(kind, data) for kind, data in pairs)
    assert list(children(written)) == pairs
    assert len(written) % 4 == 0


@given(DATA)
def test_nested_attributes_are_read_without_their_flag(data):
    assert list(children(nested_attribute(5, data))) == [(5, data)]


@given(st.lists(st.binary(max_size=40).map(lambda data: data + b"\0" * (-len(data) % 4))))
def test_messages_of_one_answer_are_told_apart(contents):
    answer = b"".join(message(7, 0, 1, content) for content in contents)
    assert list(split(answer)) == [(7, content) for content in contents]


@given(st.binary(max_size=60))
def test_any_bytes_are_read_as_far_as_they_go(data):
    list(children(data))
    list(split(data))
