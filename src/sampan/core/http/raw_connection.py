"""A connection after its upgrade: raw bytes both ways, with backpressure both ways.

Job: turn an asyncio transport into `core.http.messages.Connection`.
Invariant: bytes come out in the order they went in, those that came with the head first.
Invariant: no more than `READ_AHEAD` bytes, and what one read brought, wait for a reader.
Owner: whoever took the connection over; one reader and one writer at a time.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from sampan.core.wakeup import Wakeup

READ_AHEAD = 256 * 1024
KEEPALIVE_SECONDS = 15  # as Go's net package: silent peers are probed, dead ones found


def _nobody() -> None:
    """The default for `on_lost`."""


class RawConnection(asyncio.Protocol):
    """Takes over a transport that may already be paused or closed."""

    def __init__(
        self,
        transport: asyncio.Transport,
        leftover: bytes = b"",
        *,
        on_lost: Callable[[], None] = _nobody,
    ) -> None:
        self._transport = transport
        self._encrypted = transport.get_extra_info("ssl_object") is not None
        self._on_lost = on_lost
        self._buffer: list[bytes] = [leftover] if leftover else []
        self._buffered = len(leftover)
        self._reading_paused = self._lost = False
        self._eof = transport.is_closing()  # whoever had it before us was told, we will not be
        self._error: Exception | None = None
        self._reader = Wakeup()  # there is one
        self._writable: asyncio.Future[None] | None = None

    # What its owner calls.

    async def read(self) -> bytes:
        while not self._buffer:
            if self._eof or self._lost:
                return b""
            await self._reader.wait()
        data = self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer)
        self._buffer, self._buffered = [], 0
        if self._reading_paused and not self._lost:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        if self._lost or self._transport.is_closing():
            raise ConnectionResetError("the connection is closed") from self._error
        self._transport.write(data)
        while self._writable is not None:
            await asyncio.shield(self._writable)
            if self._lost:
                raise ConnectionResetError("the connection is closed") from self._error

    def write_eof(self) -> bool:
        if not self._transport.can_write_eof():
            return False
        if not self._transport.is_closing():
            self._transport.write_eof()
        return True

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    @property
    def peer_certificate(self) -> bytes | None:
        """DER, where the other side showed one."""
        ssl_object = self._transport.get_extra_info("ssl_object")
        if ssl_object is None:
            return None
        return cast("bytes | None", ssl_object.getpeercert(binary_form=True))

    # What the transport calls.

    def data_received(self, data: bytes) -> None:
        self._buffer.append(data)
        self._buffered += len(data)
        if self._buffered > READ_AHEAD and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._reader.wake()

    def eof_received(self) -> bool:
        self._eof = True
        self._reader.wake()
        return not self._encrypted  # TLS knows no half-closed connections

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost, self._error = True, error
        self._reader.wake()
        self.resume_writing()
        self._on_lost()


def probe_silent_peers(sock: socket.socket | None) -> None:
    """Without this a peer that lost power is waited for for ever."""
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_SECONDS)
