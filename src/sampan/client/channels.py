"""Channels over one WebSocket: exec, attach and port-forward.

Job: frames to (channel, bytes) and back, blocking, on a socket that has been upgraded.
Invariant: pings are answered; the end of the other side is the end of the messages.
"""

import os
import select
import socket
import ssl

from sampan.core.http.websocket import BINARY, CLOSE, PING, PONG, FrameReader, render_frame

CHUNK_BYTES = 65536
Message = tuple[int, bytes]


class ChannelSocket:
    def __init__(self, link: socket.socket, unread: bytes) -> None:
        self.link = link
        self._reader = FrameReader(from_client=False)
        self._partial = b""
        self._waiting: list[Message] = []
        self.is_open = True
        self.greeted: set[int] = set()  # port-forward: channels that have said their port
        self._take(unread)

    def send(self, channel: int, data: bytes) -> None:
        self._frame(BINARY, bytes([channel]) + data)

    def messages(self, *, block: bool = True) -> list[Message]:
        """What has come; at least one message unless the other side is gone, or not `block`."""
        while not self._waiting and self.is_open:
            if not block and not self._is_readable(0.0):
                break
            self._read()
        found, self._waiting = self._waiting, []
        return found

    def has_unread(self) -> bool:
        """Whether bytes wait inside TLS, where select does not see them."""
        return bool(self._waiting) or (
            isinstance(self.link, ssl.SSLSocket) and self.link.pending() > 0
        )

    def close(self) -> None:
        self.is_open = False
        self.link.close()

    def _is_readable(self, seconds: float) -> bool:
        return self.has_unread() or bool(select.select([self.link], [], [], seconds)[0])

    def _read(self) -> None:
        try:
            data = self.link.recv(CHUNK_BYTES)
        except OSError:
            data = b""
        if not data:
            self.is_open = False
            return
        self._take(data)

    def _take(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            if frame.opcode == PING:
                self._frame(PONG, frame.payload)
            elif frame.opcode == CLOSE:
                self.is_open = False
            elif frame.opcode != PONG:
                self._partial += frame.payload
                if frame.final and self._partial:
                    self._waiting.append((self._partial[0], self._partial[1:]))
                    self._partial = b""

    def _frame(self, opcode: int, payload: bytes) -> None:
        try:
            self.link.sendall(render_frame(opcode, payload, os.urandom(4)))
        except OSError:
            self.is_open = False
