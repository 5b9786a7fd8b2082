"""SPDY/3.1 frames, both sides of one connection."""

import itertools
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.http.spdy import (
    MAX_DATA_BYTES,
    Data,
    GoAway,
    Opened,
    Ping,
    Replied,
    Reset,
    Session,
    SpdyError,
    dictionary,
)


def test_the_dictionary_is_that_of_the_draft():
    assert len(dictionary()) == 1423
    assert zlib.adler32(dictionary()) == 0xE3C6A7C2


def test_streams_are_opened_answered_and_closed():
    client, server = Session(), Session(client=False)
    stream, frame = client.open({"streamtype": "stdin", "Port": "80"})
    assert stream == 1
    assert server.feed(frame) == [Opened(1, {"streamtype": "stdin", "port": "80"})]
    assert client.feed(server.reply(1, {"a": "b"})) == [Replied(1, {"a": "b"})]
    assert server.feed(client.data(1, b"hello")) == [Data(1, b"hello")]
    assert server.feed(client.data(1, b"", fin=True)) == [Data(1, b"", True)]
    assert client.feed(server.reset(1)) == [Reset(1, 5)]
    assert client.open({})[0] == 3
    assert server.open({})[0] == 2


def test_header_blocks_share_one_compressor():
    client, server = Session(), Session(client=False)
    for number in range(5):
        _, frame = client.open({"streamtype": "data", "port": str(number)})
        (event,) = server.feed(frame)
        assert isinstance(event, Opened)
        assert event.headers["port"] == str(number)


def test_pings_are_told_apart_from_their_answers():
    client = Session()
    (theirs,) = client.feed(Session(client=False).ping(2))
    assert theirs == Ping(2)
    assert not client.is_answer(Ping(2))
    assert client.is_answer(Ping(1))


def test_long_data_is_cut_and_only_the_last_piece_ends_the_stream():
    events = Session().feed(Session().data(1, b"x" * (2 * MAX_DATA_BYTES + 1), fin=True))
    assert [len(event.payload) for event in events] == [MAX_DATA_BYTES, MAX_DATA_BYTES, 1]
    assert [event.fin for event in events] == [False, False, True]
    assert Session().data(1, b"") == b""


def test_frames_that_mean_nothing_to_us_are_passed_over():
    settings = bytes.fromhex("8003000400000004") + b"\0\0\0\0"
    window = bytes.fromhex("8003000900000008") + b"\0\0\0\1\0\0\1\0"
    away = bytes.fromhex("8003000700000008") + b"\0\0\0\7\0\0\0\0"
    assert Session().feed(settings + window + away) == [GoAway(7)]


@given(st.data())
def test_any_split_of_the_bytes_gives_the_same_events(data):
    client = Session()
    stream = b"".join(
        [
            client.open({"streamtype": "error"})[1],
            client.data(1, b"some bytes"),
            client.ping(3),
            client.open({"streamtype": "stdin"})[1],
            client.data(3, b"more", fin=True),
        ]
    )
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    reader = Session(client=False)
    events = []
    for a, b in itertools.pairwise([0, *cuts, len(stream)]):
        events += reader.feed(stream[a:b])
    assert events == Session(client=False).feed(stream)


@pytest.mark.parametrize(
    "nonsense",
    [
        bytes.fromhex("8002000100000000"),  # version 2
        bytes.fromhex("8003000100000000"),  # an opening without a stream
        bytes.fromhex("800300010000000c") + b"\0\0\0\1\0\0\0\0\0\0ab",  # not compressed
        bytes.fromhex("8003000300000004") + b"\0\0\0\1",  # half a reset
    ],
)
def test_what_is_not_spdy_is_an_error(nonsense):
    with pytest.raises(SpdyError):
        Session().feed(nonsense)


def test_a_header_block_that_unpacks_without_end_is_an_error():
    client = Session()
    _, frame = client.open({"a": "x" * 200_000})
    with pytest.raises(SpdyError, match="too large"):
        Session(client=False).feed(frame)


@given(st.binary(max_size=200))
def test_noise_is_an_error_or_nothing_but_never_a_crash(noise):
    try:
        Session().feed(noise)
    except SpdyError:
        return
