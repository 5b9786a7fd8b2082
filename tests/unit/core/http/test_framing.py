"""How answers are framed, by what their client speaks."""

import pytest

from sampan.core.http import framing
from sampan.core.http.messages import STEP_BYTES, Request, Response, Stream
from sampan.core.http.wire import Arrived

DATE = "date: today\r\n"


def arrived(method="GET", **words):
    return Arrived(
        Request(method, "/", "", {}), **{"keep_alive": True, "chunks_allowed": True, **words}
    )


async def nothing():
    for piece in ():
        yield piece


def test_a_small_answer_is_one_write_and_a_large_one_goes_in_steps():
    first, rest = framing.response(arrived(), Response(200, (), b"hi"), DATE, keep_alive=True)
    assert first.endswith(b"content-length: 2\r\n\r\nhi")
    assert list(rest) == []
    body = bytes(framing.JOINED_BYTES) + bytes(STEP_BYTES)
    first, rest = framing.response(arrived(), Response(200, (), body), DATE, keep_alive=True)
    assert first.endswith(b"\r\n\r\n")
    assert b"".join(rest) == body


@pytest.mark.parametrize(
    ("item", "status", "ends"),
    [(arrived("HEAD"), 200, b"content-length: 2\r\n\r\n"), (arrived(), 304, b"today\r\n\r\n")],
)
def test_what_has_no_body_says_at_most_how_long_it_were(item, status, ends):
    first, rest = framing.response(item, Response(status, (), b"hi"), DATE, keep_alive=True)
    assert first.endswith(ends)
    assert list(rest) == []


def test_who_keeps_its_connection_is_told_in_its_own_words():
    def heads(item, keep_alive):
        return framing.response(item, Response(200), DATE, keep_alive=keep_alive)[0]

    assert b"connection" not in heads(arrived(), True)
    assert b"connection: keep-alive\r\n" in heads(arrived(chunks_allowed=False), True)
    assert b"connection: close\r\n" in heads(arrived(), False)


def test_a_stream_has_a_length_or_chunks_or_the_end_of_its_connection():
    def head(length, chunked):
        reply = Stream(200, (), nothing(), length)
        return framing.stream_head(arrived(), reply, DATE, chunked=chunked, keep_alive=True)

    assert b"content-length: 7\r\n" in head(7, False)
    assert b"transfer-encoding: chunked\r\n" in head(None, True)
    assert b"length" not in head(None, False)
    assert b"encoding" not in head(None, False)
