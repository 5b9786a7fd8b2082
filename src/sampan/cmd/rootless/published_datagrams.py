"""One UDP port of the machine, led to the node's own address inside, and answers back.

Job: a socket inside for each client, so that an answer finds its way; closed when the client has
    been silent for a while.
Invariant: no more than so many clients at once: the one who was silent longest makes room.
Owner: PublishedPorts, one for each port.
"""

import asyncio
import contextlib
import functools
import socket

from sampan.core.bounded import Recent
from sampan.core.clock import Clock

MOST_CLIENTS = 512
IDLE_SECONDS = 120.0  # as long as the kernel's own tables remember a stream of datagrams
_MOST_BYTES, _AT_ONCE = 1 << 16, 64
Address = tuple[str, int]


class _Inside:
    """A client, as the node sees it."""

    def __init__(self, opened: socket.socket, heard_at: float) -> None:
        self.socket, self.heard_at = opened, heard_at


class PublishedDatagrams:
    def __init__(self, listening: socket.socket, target: Address, clock: Clock) -> None:
        """`listening` is closed with it."""
        self._listening, self._target, self._clock = listening, target, clock
        # The most silent first.
        self._clients: Recent[Address, _Inside] = Recent(MOST_CLIENTS, self._close)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listening.fileno(), self._come)

    @property
    def clients(self) -> int:
        return len(self._clients)

    def close(self) -> None:
        self._loop.remove_reader(self._listening.fileno())
        self._listening.close()
        for client in list(self._clients):
            self._forget(client)

    def _come(self) -> None:
        """Those who were silent too long go when somebody comes: they cost nothing before."""
        self._forget_silent()
        for _ in range(_AT_ONCE):
            try:
                data, client = self._listening.recvfrom(_MOST_BYTES)
            except OSError:  # nobody is left, or one of them does not take his answer
                return
            with contextlib.suppress(OSError):  # nobody listens inside, or not so fast
                self._inside_of(client).send(data)

    def _forget_silent(self) -> None:
        before = self._clock.monotonic() - IDLE_SECONDS
        for client, inside in list(self._clients.items()):
            if inside.heard_at > before:
                return
            self._forget(client)

    def _inside_of(self, client: Address) -> socket.socket:
        """Raises OSError."""
        known = self._clients.get(client)
        if known is None:
            family = socket.AF_INET6 if ":" in self._target[0] else socket.AF_INET
            opened = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            known = _Inside(opened, 0.0)
            self._clients[client] = known
            opened.connect(self._target)
            self._loop.add_reader(opened.fileno(), functools.partial(self._answer, client))
        known.heard_at = self._clock.monotonic()
        self._clients[client] = known
        return known.socket

    def _answer(self, client: Address) -> None:
        for _ in range(_AT_ONCE):
            try:
                data = self._clients[client].socket.recv(_MOST_BYTES)
                self._listening.sendto(data, client)
            except OSError:
                return

    def _forget(self, client: Address) -> None:
        self._close(client, self._clients.pop(client))

    def _close(self, _client: Address, inside: _Inside) -> None:
        self._loop.remove_reader(inside.socket.fileno())
        inside.socket.close()
