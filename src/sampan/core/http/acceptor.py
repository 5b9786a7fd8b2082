"""Connections before TLS: taken, waited for, and begun a few at a time.

Job: accept; when the first byte of a handshake is there, begin it.
Invariant: who connects and says nothing costs a socket, no memory of TLS, and ten seconds at most;
    there are so many of them, and so many handshakes, in all and of one address.
Invariant: of any number of handshakes a few are begun in one turn of the loop.
Owner: a Server.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections import deque
from collections.abc import Callable

from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Limits
from sampan.core.log import get_logger
from sampan.core.shares import Shares
from sampan.core.tasks import Tasks

AT_ONCE = 32  # connections that are taken in one turn of the loop
BEGUN_AT_ONCE = 8  # handshakes: a millisecond each
TLS_SHUTDOWN_SECONDS = 2.0
_OUT_OF_FILES_SECONDS = 0.5
_LOOK_SECONDS = 1.0
_HANDSHAKE = b"\x16"
# As net/http.
_NOT_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiting:
    remote: str
    until: float


class Acceptor:
    def __init__(
        self,
        factory: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        limits: Limits,
        tasks: Tasks,
    ) -> None:
        self._factory, self._context, self._limits, self._tasks = factory, context, limits, tasks
        self._silent = Shares(limits.silent, limits.silent_per_client)
        self._handshakes = Shares(limits.handshakes, limits.handshakes_per_client)
        self._waiting: dict[socket.socket, _Waiting] = {}  # for a byte, the oldest first
        self._ready: deque[tuple[socket.socket, _Waiting]] = deque()  # for a handshake
        self._listening: socket.socket | None = None
        self._beginning = False
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def listen(self, listening: socket.socket, backlog: int) -> None:
        listening.setblocking(False)
        listening.listen(backlog)
        self._listening = listening
        self._loop.add_reader(listening.fileno(), self._accept)

    def close(self) -> None:
        if self._listening is not None:
            self._loop.remove_reader(self._listening.fileno())
            self._listening.close()
            self._listening = None
        if self._timer is not None:
            self._timer.cancel()
        for waiting in list(self._waiting):
            self._give_up(waiting)
        for ready, _ in self._ready:
            ready.close()
        self._ready.clear()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            if self._listening is None:
                return
            try:
                accepted, peer = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            accepted.setblocking(False)
            self._await_first_byte(accepted, str(peer[0]) if peer else "")

    def _pause(self, error: OSError) -> None:
        """Until there are descriptors again; whoever connects meanwhile waits in the kernel."""
        if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            log.warning("a connection could not be taken", error=error)
            return
        log.warning("no more connections can be taken for a moment", error=error)
        assert self._listening is not None
        self._loop.remove_reader(self._listening.fileno())
        self._loop.call_later(_OUT_OF_FILES_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self._listening is not None:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _await_first_byte(self, accepted: socket.socket, remote: str) -> None:
        if not self._silent.take(remote):
            # Who means it says something at once: the one that has kept quiet for longest goes.
            self._give_up(self._oldest(remote))
            self._silent.take(remote)
        until = self._loop.time() + self._limits.header_seconds
        self._waiting[accepted] = _Waiting(remote, until)
        self._loop.add_reader(accepted.fileno(), self._first_byte, accepted)
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_SECONDS, self._look_at_deadlines)

    def _oldest(self, remote: str) -> socket.socket:
        """Of those from there, or of all where it has none."""
        mine = (each for each, waiting in self._waiting.items() if waiting.remote == remote)
        return next(mine, None) or next(iter(self._waiting))

    def _first_byte(self, accepted: socket.socket) -> None:
        waiting = self._forget(accepted)
        try:
            first = accepted.recv(1, socket.MSG_PEEK)
        except OSError:
            first = b""
        if first == _HANDSHAKE and len(self._ready) < self._limits.silent:
            self._ready.append((accepted, waiting))
            self._begin_soon()
            return
        if first and first != _HANDSHAKE:
            with contextlib.suppress(OSError):
                accepted.send(_NOT_TLS)
        accepted.close()

    def _begin_soon(self) -> None:
        if not self._beginning and self._ready:
            self._beginning = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._beginning, begun, now = False, 0, self._loop.time()
        for _ in range(len(self._ready)):
            accepted, waiting = self._ready.popleft()
            if self._listening is None or waiting.until < now:
                accepted.close()
            elif begun < BEGUN_AT_ONCE and self._handshakes.take(waiting.remote):
                begun += 1
                self._tasks.start("handshake", self._shake_hands(accepted, waiting.remote))
            else:
                self._ready.append((accepted, waiting))
        if begun:
            self._begin_soon()  # else the end of a handshake will

    async def _shake_hands(self, accepted: socket.socket, remote: str) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._factory,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.header_seconds,
                ssl_shutdown_timeout=TLS_SHUTDOWN_SECONDS,
            )
        except (OSError, ssl.SSLError) as error:
            log.debug("a handshake failed", error=error, remote=remote)
            accepted.close()
        finally:
            self._handshakes.give_back(remote)
            self._begin_soon()

    def _look_at_deadlines(self) -> None:
        self._timer, now = None, self._loop.time()
        for accepted, waiting in list(self._waiting.items()):
            if waiting.until > now:
                break
            self._give_up(accepted)
        if self._waiting:
            self._timer = self._loop.call_later(_LOOK_SECONDS, self._look_at_deadlines)

    def _give_up(self, accepted: socket.socket) -> None:
        self._forget(accepted)
        accepted.close()

    def _forget(self, accepted: socket.socket) -> _Waiting:
        self._loop.remove_reader(accepted.fileno())
        waiting = self._waiting.pop(accepted)
        self._silent.give_back(waiting.remote)
        return waiting
