"""Ports of simulated pods: port-forward is answered by script.

Job: a script and a port → a connected socket whose other end plays what the script says.
Invariant: a port that the script does not name refuses, as one that nobody listens on.
"""

import asyncio
import errno
import os
import re
import socket

from sampan.core.digits import is_digits
from sampan.core.patterns import lazy_pattern
from sampan.kubelet.simulated.script import Script

_LENGTH = lazy_pattern(rb"\r\ncontent-length:[ \t]*(\d+)", re.I)
_CHUNKED = lazy_pattern(rb"\r\ntransfer-encoding:[ \t]*chunked", re.I)
MOST_HEAD_BYTES = 64 * 1024  # of a request that is waited for


async def connect(script: Script, port: int) -> socket.socket:
    """Raises OSError."""
    body, text = script.text(f"http.{port}"), script.text(f"tcp.{port}")
    if not body and not text:
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    played = _Http(http_answer(body)) if body else _Speaker(text.encode())
    await loop.connect_accepted_socket(lambda: played, theirs)
    return ours


def http_answer(written: str) -> bytes:
    """`BODY`, or `503 BODY`; the connection ends with it."""
    status, _, rest = written.partition(" ")
    if not (is_digits(status) and len(status) == 3):
        status, rest = "200", written
    body = rest.encode()
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Scripted')}\r\ncontent-length: {len(body)}"
    return f"{head}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n".encode() + body


_REASONS = {"200": "OK", "404": "Not Found", "500": "Internal Server Error",
            "503": "Service Unavailable"}  # fmt: skip


def is_whole(request: bytes) -> bool:
    """Whether all of it has come; more than that is not waited for."""
    head, end, body = request.partition(b"\r\n\r\n")
    if not end:
        return len(request) > MOST_HEAD_BYTES
    if _CHUNKED.search(head):
        return body.endswith(b"0\r\n\r\n")
    length = _LENGTH.search(head)
    return length is None or len(body) >= int(length[1])


class _Speaker(asyncio.Protocol):
    """Says its text to whoever comes, and hangs up."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(self._text)
        transport.write_eof()  # what the client still says is read, and means nothing


class _Http(asyncio.Protocol):
    """Answers one request, and hangs up."""

    def __init__(self, answer: bytes) -> None:
        self._answer, self._request = answer, bytearray()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if self._answer:
            self._request += data
            if is_whole(bytes(self._request)):
                self._transport.write(self._answer)
                self._transport.write_eof()
                self._answer = b""
