"""Reading requests from bytes, writing answers to bytes."""

import itertools
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.http.messages import Limits
from sampan.core.http.wire import (
    Arrived,
    Refusal,
    RequestReader,
    http_date,
    render_chunk,
    render_head,
)

LIMITS = Limits(body_bytes=1000, header_bytes=2000)
GET = b"GET /api?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"PUT /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
)
UPGRADE = (
    b"GET /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
    b"\x80\x03 raw bytes"
)
LARGE = b"POST /big HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n" + b"x" * 1001
LARGE_CHUNKED = (
    b"POST /big HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    + render_chunk(b"y" * 600) * 2
)
BAD = b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"
HUGE_HEAD = b"GET / HTTP/1.1\r\nHost: a\r\nBig: " + b"v" * 3000 + b"\r\n\r\n"
MESSAGES = [GET, POST, CHUNKED, UPGRADE, LARGE, LARGE_CHUNKED, BAD, HUGE_HEAD]


def read(*pieces: bytes, limits: Limits = LIMITS) -> RequestReader:
    reader = RequestReader(limits)
    for piece in pieces:
        reader.feed(piece)
    return reader


def seen(reader: RequestReader) -> list[object]:
    """What a handler would get to see."""
    items: list[object] = []
    for item in reader.arrived:
        if isinstance(item, Refusal):
            items.append(item.status)
        else:
            request = item.request
            kept = (request.method, request.path, request.query, dict(request.headers))
            items.append((*kept, request.body, request.body_too_large, item.upgrade))
    return items


def refused(data: bytes) -> int:
    (item,) = read(data).arrived
    assert isinstance(item, Refusal), item
    return item.status


@given(st.lists(st.sampled_from(MESSAGES), max_size=4), st.data())
def test_any_split_of_the_bytes_gives_the_same_requests(messages, data):
    stream = b"".join(messages)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    edges = [0, *cuts, len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    split, whole = read(*pieces), read(stream)
    assert seen(split) == seen(whole)
    if any(isinstance(item, Arrived) and item.upgrade for item in whole.arrived):
        assert split.leftover == whole.leftover


def test_byte_by_byte_gives_the_same_requests():
    stream = GET + POST + CHUNKED + UPGRADE
    assert seen(read(*(bytes([b]) for b in stream))) == seen(read(stream))
    assert len(read(stream).arrived) == 4


def test_the_parts_of_a_request():
    (item,) = read(
        b"GET /api/v1/pods%2F?watch=1&x=?y HTTP/1.1\r\nHOST: h:1\r\nX-Odd: 1\r\nx-odd: 2\r\n"
        b"Cookie: a=1\r\nCookie: b=2\r\n\r\n"
    ).arrived
    assert isinstance(item, Arrived)
    request = item.request
    assert (request.method, request.path, request.query) == (
        "GET",
        "/api/v1/pods%2F",
        "watch=1&x=?y",
    )
    assert request.headers == {"host": "h:1", "x-odd": "1, 2", "cookie": "a=1; b=2"}
    assert item.keep_alive
    assert item.chunks_allowed


def test_an_absolute_target_is_read_as_its_path():
    (item,) = read(b"GET http://other/a/b?c=d HTTP/1.1\r\nHost: a\r\n\r\n").arrived
    assert isinstance(item, Arrived)
    assert (item.request.path, item.request.query) == ("/a/b", "c=d")


@pytest.mark.parametrize(
    ("version", "connection", "keep_alive", "chunks_allowed"),
    [
        (b"1.1", b"", True, True),
        (b"1.1", b"Connection: close\r\n", False, True),
        (b"1.0", b"", False, False),
        (b"1.0", b"Connection: keep-alive\r\n", True, False),
    ],
)
def test_what_the_version_says_about_the_answer(version, connection, keep_alive, chunks_allowed):
    (item,) = read(b"GET / HTTP/" + version + b"\r\nHost: a\r\n" + connection + b"\r\n").arrived
    assert isinstance(item, Arrived)
    assert (item.keep_alive, item.chunks_allowed) == (keep_alive, chunks_allowed)


BOTH = b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST / HTTP/1.1\r\nHost: a\r\n" + BOTH + b"\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: one\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: nul\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: bare\rreturn\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /\r\n\r\n",
        b"get / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        UPGRADE.replace(b"Host: a", b"Host: a\r\nContent-Length: 2"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(request_bytes):
    assert refused(request_bytes) in (400, 505)


@pytest.mark.parametrize("body", ["content-length: 3", "transfer-encoding: chunked"])
def test_a_request_for_an_upgrade_has_no_body(body):
    """What follows its head is the other protocol: a body there could be read as either."""
    head = f"GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: x\r\n{body}\r\n\r\n"
    reader = RequestReader(Limits())
    reader.feed(head.encode() + b"3\r\nabc\r\n0\r\n\r\n")
    assert [item.status for item in reader.arrived if isinstance(item, Refusal)] == [400]
    assert not any(isinstance(item, Arrived) for item in reader.arrived)


def test_lines_of_a_repeated_header_are_kept_apart():
    reader = RequestReader(Limits())
    lines = "".join(f"x-group: {value}\r\n" for value in ("a", "b,c", ""))
    reader.feed(f"GET / HTTP/1.1\r\nhost: h\r\n{lines}x-one: d,e\r\n\r\n".encode())
    (item,) = reader.arrived
    assert isinstance(item, Arrived)
    assert item.request.headers["x-group"] == "a, b,c, "
    assert list(item.request.values("x-group")) == ["a", "b,c", ""]
    assert list(item.request.values("x-one")) == ["d,e"]
    assert list(item.request.values("x-none")) == []


def test_nothing_is_read_after_a_refusal():
    reader = read(BAD, GET)
    assert seen(reader) == [400]


def test_requests_before_a_refusal_are_kept():
    assert [type(item) for item in read(GET + POST + BAD + GET).arrived] == [
        Arrived,
        Arrived,
        Refusal,
    ]


@pytest.mark.parametrize("large", [LARGE, LARGE_CHUNKED])
def test_a_body_over_the_limit_reaches_the_handler_without_the_body(large):
    reader = read(large + GET)
    (item,) = reader.arrived
    assert isinstance(item, Arrived)
    assert item.request.body_too_large
    assert item.request.body == b""
    assert not item.keep_alive


def test_a_body_at_the_limit_is_read():
    whole = b"POST /big HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000
    (item,) = read(whole).arrived
    assert isinstance(item, Arrived)
    assert item.request.body == b"x" * 1000


@pytest.mark.parametrize(
    "endless",
    [
        [b"G" * 10],
        [b"GET /", b"a"],
        [b"GET / HTTP/1.1\r\nX: ", b"v"],
        [b"GET / HTTP/1.1\r\n", b"A: b\r\n"],
        [b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;", b"e"],
        [b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: ", b"e"],
        [b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"T: e\r\n"],
    ],
)
def test_what_never_ends_is_refused_at_the_limit(endless):
    reader = RequestReader(LIMITS)
    reader.feed(endless[0])
    for _ in range(LIMITS.header_bytes + 1):
        if reader.arrived:
            break
        reader.feed(endless[-1])
    assert seen(reader) in ([431], [400])
    assert not reader.in_message


def test_a_client_that_expects_100_is_waited_for_until_its_body_comes():
    head = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    reader = read(head)
    assert reader.continue_due
    assert reader.in_body
    reader.feed(b"hi")
    assert not reader.continue_due
    assert len(reader.arrived) == 1
    assert refused(head.replace(b"100-continue", b"a-miracle")) == 417
    too_large = read(head.replace(b": 2", b": 2000"))
    assert not too_large.continue_due
    assert len(too_large.arrived) == 1


def test_an_upgrade_stops_the_reading_until_it_is_declined():
    reader = read(UPGRADE.partition(b"\x80")[0], GET)
    assert [item.upgrade for item in reader.arrived if isinstance(item, Arrived)] == [True]
    assert reader.leftover == GET
    reader.decline_upgrade()
    assert len(reader.arrived) == 2
    assert reader.leftover == b""


def test_a_head_is_written_with_its_framing():
    head = render_head(404, [("content-type", "text/plain")], "content-length: 3\r\n")
    assert (
        head == b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\n"
    )


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: x", "a\nb", "a\rb"])
def test_a_line_break_in_a_header_is_a_bug(value):
    with pytest.raises(ValueError, match="line break"):
        render_head(200, [("x", value)], "")


def test_a_chunk_carries_its_size_in_hex():
    assert render_chunk(b"a" * 26) == b"1a\r\n" + b"a" * 26 + b"\r\n"


@pytest.mark.parametrize("now", [0.0, 951_782_400.5, 1_735_689_599.999, 1_900_000_000.0])
def test_a_date_is_written_as_the_mails_library_does(now):
    assert http_date(now) == formatdate(now, usegmt=True)
