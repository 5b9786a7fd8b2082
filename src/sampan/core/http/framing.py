"""How an answer of our server is framed.

Job: a reply and what its client speaks → the bytes before the body, and the body in steps. Pure.
Invariant: where an answer ends is told by its length or by its last chunk, else by the end of the
    connection, which does not go on then.
"""

from collections.abc import Iterable, Iterator

from sampan.core.http.messages import STEP_BYTES, Response, Stream
from sampan.core.http.wire import LAST_CHUNK, Arrived, has_no_body, render_chunk, render_head

JOINED_BYTES = 64 * 1024  # below this a copy is cheaper than a second write
CHUNKED = "transfer-encoding: chunked\r\n"


def response(
    item: Arrived, reply: Response, date: str, *, keep_alive: bool
) -> tuple[bytes, Iterable[bytes | memoryview]]:
    """What is written at once, and what is left of a large answer. That goes in steps: the client
    decrypts and reads one while we encrypt the next, and only what is under way is held twice."""
    bodyless = has_no_body(reply.status)
    body, pieces, framing = reply.body, reply.pieces, date
    if pieces is not None and not item.chunks_allowed:
        body, pieces = reply.whole(), None
    if pieces is not None:
        framing += CHUNKED
    elif not bodyless:
        framing += f"content-length: {len(body)}\r\n"
    head = render_head(reply.status, reply.headers, framing + _persistence(item, keep_alive))
    if bodyless or item.request.method == "HEAD":
        return head, ()
    if pieces is not None:
        return head, _chunks(pieces)
    return (head + body, ()) if len(body) < JOINED_BYTES else (head, _steps(body))


def stream_head(
    item: Arrived, reply: Stream, date: str, *, chunked: bool, keep_alive: bool
) -> bytes:
    framing = date + _persistence(item, keep_alive)
    if not has_no_body(reply.status):
        if reply.length is not None:
            framing += f"content-length: {reply.length}\r\n"
        elif chunked:
            framing += CHUNKED
    return render_head(reply.status, reply.headers, framing)


def _steps(body: bytes) -> Iterator[memoryview]:
    whole = memoryview(body)
    return (whole[at : at + STEP_BYTES] for at in range(0, len(body), STEP_BYTES))


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield from map(render_chunk, pieces)
    yield LAST_CHUNK


def _persistence(item: Arrived, keep_alive: bool) -> str:
    if not keep_alive:
        return "connection: close\r\n"
    return "" if item.chunks_allowed else "connection: keep-alive\r\n"
