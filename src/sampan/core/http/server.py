"""An HTTP/1.1 server: one protocol per connection, one task per connection.

Job: listen, and stop in good order; each connection answers for itself.
Invariant: after `stop()` returned there is no listener, no connection and no task.
Owner: `Server` owns its connections.
"""

import asyncio
import socket
import ssl
from typing import cast

from sampan.core.clock import Clock, SystemClock
from sampan.core.http.acceptor import TLS_SHUTDOWN_SECONDS, Acceptor
from sampan.core.http.messages import Handler, Limits, WantsBody
from sampan.core.http.server_connection import Connections, ServerConnection

BACKLOG = 1024


class Server:
    def __init__(
        self,
        handler: Handler,
        *,
        ssl_context: ssl.SSLContext | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        name: str = "http",
        wants_body: WantsBody | None = None,
        knows_callers: bool = False,
    ) -> None:
        """`wants_body`: asked before a large body is read; without it everybody's is.
        `knows_callers`: the handler says of each request who asks (`known_as`)."""
        self.connections = Connections(
            handler, wants_body, limits or Limits(), clock or SystemClock(), name,
            knows_callers=knows_callers,
        )  # fmt: skip
        self._ssl = ssl_context
        self._listener: asyncio.Server | Acceptor | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and say on which port; OSError as the system gave it."""
        listening = bound_socket(host, port)
        await self.start_on(listening)
        return cast(int, listening.getsockname()[1])

    async def start_on(self, listening: socket.socket) -> None:
        """Listen on a socket that is already bound: whoever needs the port before the handler."""
        loop = asyncio.get_running_loop()

        def connection() -> ServerConnection:
            return ServerConnection(self.connections, loop)

        if listening.family == socket.AF_UNIX:
            self._listener = await loop.create_unix_server(
                connection, sock=listening, backlog=BACKLOG
            )
            return
        if self._ssl is None:
            self._listener = await loop.create_server(connection, sock=listening, backlog=BACKLOG)
            return
        shared = self.connections
        acceptor = Acceptor(connection, self._ssl, shared.limits, shared.tasks)
        acceptor.listen(listening, BACKLOG)
        self._listener = acceptor

    async def stop(self, grace_seconds: float) -> None:
        """Running requests may finish, streams end cleanly, the rest is closed after the grace."""
        connections = self.connections
        connections.stopping = True
        if self._listener is not None:
            self._listener.close()
        for connection in list(connections.open):
            connection.wind_down()
        if not await connections.all_gone(grace_seconds):
            await connections.tasks.stop()
            for connection in list(connections.open):
                connection.abort()
            await connections.all_gone(TLS_SHUTDOWN_SECONDS)
        await connections.tasks.stop()


def bound_socket(host: str, port: int, *, only_its_family: bool = False) -> socket.socket:
    """A TCP socket bound to the address, IPv4 or IPv6; OSError as the system gave it. `::` is every
    address, also those of IPv4 unless `only_its_family`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6 and only_its_family:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
