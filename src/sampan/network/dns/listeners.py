"""Listeners of the name server: UDP and TCP sockets of one address.

Job: take questions, a few at a time; hand each on with who asks; send what is answered.
Invariant: nobody else's turn on the loop is further away than so many questions, however many come:
    the rest wait in the kernel, which drops what is too much.
Invariant: streams are bounded, in all and of each asker.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from sampan.core.bounded import Bounded
from sampan.core.log import get_logger
from sampan.core.shares import Shares
from sampan.network.dns import wire
from sampan.network.dns.metrics import Answered, Channel, Series
from sampan.network.socket_buffers import widen_receiving

PORT = 53
MOST_ANSWERS = 20_000
AT_ONCE = 16  # questions of one turn: a millisecond where none was asked before
WAITING_BYTES = 4 << 20
MOST_STREAMS, MOST_STREAMS_OF_ONE = 512, 64
TCP_IDLE_SECONDS = 10.0
_OPT_BYTES = 11  # of EDNS without options
Asker = tuple[str, int]
Receive = Callable[["Datagrams", bytes, Asker], None]
log = get_logger(__name__)


class Datagrams:
    """One socket, and the answers that were made for it: of the cluster's names as they are."""

    def __init__(self, channel: Channel, opened: socket.socket, receive: Receive) -> None:
        self.channel, self._socket, self._receive = channel, opened, receive
        # Question as bytes, without its number → answer likewise.
        self.made: Bounded[bytes, tuple[bytes, Series]] = Bounded(MOST_ANSWERS)
        asyncio.get_running_loop().add_reader(opened.fileno(), self._read)

    def _read(self) -> None:
        for _ in range(AT_ONCE):
            try:
                # One byte more than a question has tells of a longer one.
                message, asker = self._socket.recvfrom(wire.LARGEST_QUESTION + 1)
            except BlockingIOError:
                return
            except OSError as error:
                log.debug("a datagram did not arrive", error=error)
                continue
            self._receive(self, message, asker)

    def remember(self, question: bytes, answer: Answered, series: Series) -> None:
        """Of questions without options of EDNS: nearly all, and nobody can make many of one."""
        if len(question) <= wire.plain_length(question) + _OPT_BYTES:
            self.made[question[2:]] = (answer.message[2:], series)

    def send(self, message: bytes, asker: Asker) -> None:
        try:
            self._socket.sendto(message, asker)
        except OSError as error:  # who cannot be told will ask again
            log.debug("a datagram could not be sent", error=error)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()


class Streams:
    """Questions by TCP, each with its length before it."""

    def __init__(self, answer: Callable[[bytes, str], Awaitable[bytes]]) -> None:
        """`answer`: of a question and who asks it; empty: there is nothing to say."""
        self._answer = answer
        self._shares = Shares(MOST_STREAMS, MOST_STREAMS_OF_ONE)
        self._server: asyncio.Server | None = None

    async def listen(self, opened: socket.socket) -> None:
        self._server = await asyncio.start_server(self._serve, sock=opened, limit=1 << 12)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        asker = str(peer[0]) if peer else ""
        if not self._shares.take(asker):
            writer.close()
            return
        try:
            while await self._one(reader, writer, asker):
                pass
        except (asyncio.IncompleteReadError, TimeoutError, OSError):
            return
        finally:
            self._shares.give_back(asker)
            writer.close()

    async def _one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asker: str
    ) -> bool:
        """False: it is over."""
        async with asyncio.timeout(TCP_IDLE_SECONDS):
            length = int.from_bytes(await reader.readexactly(2), "big")
            if length > wire.LARGEST_QUESTION:
                return False
            message = await reader.readexactly(length)
        answer = await self._answer(message, asker)
        if not answer:
            return False
        writer.write(len(answer).to_bytes(2, "big") + answer)
        async with asyncio.timeout(TCP_IDLE_SECONDS):
            await writer.drain()
        await asyncio.sleep(0)  # questions that wait in a row are nobody else's trouble
        return True


def sockets(address: str) -> tuple[socket.socket, socket.socket]:
    """The well-known port, or where somebody has that on every address any other: pods come by
    the Service's address, and its endpoint says which."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    last: OSError | None = None
    for port in (PORT, 0, 0, 0):
        stream = socket.socket(family, socket.SOCK_STREAM)
        datagrams = socket.socket(family, socket.SOCK_DGRAM)
        try:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stream.bind((address, port))
            datagrams.bind((address, stream.getsockname()[1]))
            datagrams.setblocking(False)
            # A burst of questions waits here while the loop is busy, instead of being lost.
            widen_receiving(datagrams, WAITING_BYTES)
            stream.setblocking(False)
        except OSError as error:
            last = error
            stream.close()
            datagrams.close()
            continue
        return datagrams, stream
    assert last is not None
    raise last
