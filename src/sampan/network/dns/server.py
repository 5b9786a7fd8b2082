"""The name server of a node: the cluster's names from watch events, all others from elsewhere.

Job: listen by UDP and TCP, answer, and hear of Services and EndpointSlices.
Invariant: an answer about the cluster is made of what the informers know now: a change forgets
    every answer that was made before it.
Owner: one per node; the zone and the answers that were made are written here only.
"""

import asyncio
import functools
import random
import socket
import struct
from collections.abc import Callable
from typing import cast

from sampan.api.objects import Obj, key_of
from sampan.api.resources import ENDPOINT_SLICES, SERVICES
from sampan.api.rules.endpoint_slices import services_of_slice
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.network.dns import wire
from sampan.network.dns.forward import Forwarder, ForwardSettings
from sampan.network.dns.measures import (
    CACHE,
    FORWARD,
    KUBERNETES,
    Answered,
    Channel,
    DnsMeasures,
    Series,
)
from sampan.network.dns.wire import Answer, BadMessage, Question, Record
from sampan.network.dns.zone import ClusterZone
from sampan.network.socket_buffers import widen_receiving

MOST_ANSWERS = 20_000
MOST_CHASES = 8
TCP_IDLE_SECONDS = 10.0
PORT = 53
WAITING_BYTES = 4 << 20
Asker = tuple[str, int]
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DnsSettings:
    addresses: tuple[str, ...]  # where to listen, one of each family
    domain: str = "cluster.local"
    service_addresses: tuple[str, ...] = ()  # of kube-dns: what the zone says of its own server
    forward: ForwardSettings = ForwardSettings()


class ClusterDns:
    def __init__(
        self,
        settings: DnsSettings,
        informers: Informers,
        clock: Clock,
        metrics: Metrics,
        rng: random.Random,
    ) -> None:
        self._settings = settings
        self.zone = ClusterZone(settings.domain, settings.service_addresses or settings.addresses)
        self._services = informers.of(SERVICES)
        self._slices = informers.of(ENDPOINT_SLICES, indices={"named": services_of_slice})
        self._clock, self._measures = clock, DnsMeasures(metrics)
        self._forwarder = Forwarder(settings.forward, clock, rng, self._measures)
        self._tasks = Tasks("dns")
        self._datagrams: list[_Datagrams] = []
        self._listeners: list[asyncio.Server] = []
        self.endpoints: list[tuple[str, int]] = []  # where it listens

    async def start(self) -> None:
        """Listens when it returns, and knows every Service. Raises OSError."""
        self._services.on_change(self._service_changed)
        self._slices.on_change(self._slice_changed)
        await self._services.synced()
        await self._slices.synced()
        loop = asyncio.get_running_loop()
        for address in self._settings.addresses:
            datagrams, stream = _sockets(address)
            self.endpoints.append((address, stream.getsockname()[1]))
            factory = functools.partial(_Datagrams, Channel("udp", _family(address)), self._receive)
            _, protocol = await loop.create_datagram_endpoint(factory, sock=datagrams)
            self._datagrams.append(protocol)
            self._listeners.append(await asyncio.start_server(self._serve_stream, sock=stream))

    async def stop(self) -> None:
        for datagrams in self._datagrams:
            datagrams.close()
        for listener in self._listeners:
            listener.close()
        await self._tasks.stop()
        await self._forwarder.close()

    def quick_answer(self, message: bytes) -> Answered | None:
        """What needs nobody else: nearly every question about the cluster."""
        try:
            question = wire.read_question(message)
        except BadMessage:
            return Answered(_format_error(message))
        answer = self._from_zone(question)
        return None if answer is None else _answered(question, answer, question.udp_size)

    async def answer(self, message: bytes, *, udp: bool) -> Answered:
        """Whatever is needed for it."""
        try:
            question = wire.read_question(message)
        except BadMessage:
            return Answered(_format_error(message))
        limit = question.udp_size if udp else 0
        here = self._from_zone(question)
        if here is not None:
            return _answered(question, here, limit)
        if self.zone.is_mine(question.name):
            return _answered(question, await self._chase(question), limit)
        if question.cls != wire.IN:
            refusal = Answer(wire.REFUSED, authoritative=False)
            return _answered(question, refusal, limit)
        found = await self._forwarder.ask(question.name, question.type)
        plugin = CACHE if found.known else FORWARD
        if not found.message:
            failure = Answer(found.reply.rcode, authoritative=False)
            return _answered(question, failure, limit, plugin)
        rcode = wire.rcode_name(found.reply.rcode)
        return Answered(_forward(question, found.message, limit), _kind(question), rcode, plugin)

    def _from_zone(self, question: Question) -> Answer | None:
        """None where it must be asked elsewhere."""
        if question.opcode != 0:
            return Answer(wire.NOTIMP, authoritative=False)
        if question.edns_version > 0:
            return Answer(wire.BADVERS, authoritative=False)
        if self.zone.is_mine(question.name):
            answer = self.zone.answer(question.name, question.type, question.cls)
            return None if self._leads_out(answer, question.type) else answer
        if question.name.endswith(".arpa") and question.type in (wire.PTR, wire.ANY):
            return self.zone.pointer(question.name)
        return None

    def _leads_out(self, answer: Answer, kind: int) -> bool:
        return kind != wire.CNAME and wire.CNAME in wire.types_of(answer.answers)

    async def _chase(self, question: Question) -> Answer:
        """An ExternalName: its alias, and what that stands for."""
        found: list[Record] = []
        name = question.name
        for _ in range(MOST_CHASES):
            if not self.zone.is_mine(name):
                reply = (await self._forwarder.ask(name, question.type)).reply
                found += reply.records
                return Answer(reply.rcode, tuple(found))
            here = self.zone.answer(name, question.type)
            found += here.answers
            aliases = [each for each in here.answers if each.type == wire.CNAME]
            if not aliases:
                return Answer(here.rcode, tuple(found), here.authority, here.additional)
            name = str(aliases[0].data)
        return Answer(wire.SERVFAIL, tuple(found))

    def _receive(self, datagrams: "_Datagrams", message: bytes, asker: Asker) -> None:
        started = self._clock.monotonic()
        known = datagrams.made.get(message[2:])
        if known is not None:
            body, series = known
            datagrams.send(message[:2] + body, asker)
            series.count += 1
            self._measures.took(self._clock.monotonic() - started)
            return
        answer = self.quick_answer(message)
        if answer is None:
            self._tasks.start("question", self._answer_later(datagrams, message, asker, started))
        elif answer.message:
            datagrams.send(answer.message, asker)
            series = self._note(datagrams.channel, answer, started)
            datagrams.remember(message, answer, series)

    async def _answer_later(
        self, datagrams: "_Datagrams", message: bytes, asker: Asker, started: float
    ) -> None:
        answer = await self.answer(message, udp=True)
        if answer.message:
            datagrams.send(answer.message, asker)
            self._note(datagrams.channel, answer, started)

    def _note(self, channel: Channel, answer: Answered, started: float) -> Series:
        series = self._measures.series(channel, answer)
        series.count += 1
        self._measures.took(self._clock.monotonic() - started)
        return series

    async def _serve_stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        channel = Channel("tcp", _family(str(writer.get_extra_info("sockname")[0])))
        try:
            while True:
                async with asyncio.timeout(TCP_IDLE_SECONDS):
                    length = int.from_bytes(await reader.readexactly(2), "big")
                    message = await reader.readexactly(length)
                started = self._clock.monotonic()
                answer = await self.answer(message, udp=False)
                if not answer.message:
                    return
                writer.write(len(answer.message).to_bytes(2, "big") + answer.message)
                await writer.drain()
                self._note(channel, answer, started)
        except (asyncio.IncompleteReadError, TimeoutError, OSError):
            return
        finally:
            writer.close()

    def _service_changed(self, old: Obj | None, new: Obj | None) -> None:
        self._put(key_of(new or old or {}))

    def _slice_changed(self, old: Obj | None, new: Obj | None) -> None:
        services = {key for obj in (old, new) if obj for key in services_of_slice(obj)}
        for key in services:
            self._put(key)

    def _put(self, key: str) -> None:
        service = self._services.cache.get(key)
        if self.zone.put(key, service, self._slices.cache.by("named", key)):
            for datagrams in self._datagrams:
                datagrams.made.clear()


class _Datagrams(asyncio.DatagramProtocol):
    """One socket, and the answers that were made for it: of the cluster's names as they are."""

    def __init__(
        self, channel: Channel, receive: "Callable[[_Datagrams, bytes, Asker], None]"
    ) -> None:
        self.channel, self._receive = channel, receive
        # Question as bytes, without its number → answer likewise.
        self.made: dict[bytes, tuple[bytes, Series]] = {}
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not of that class in every loop, though always of its kind.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: Asker) -> None:
        self._receive(self, data, address)

    def remember(self, question: bytes, answer: Answered, series: Series) -> None:
        if len(self.made) >= MOST_ANSWERS:
            self.made.clear()
        self.made[question[2:]] = (answer.message[2:], series)

    def send(self, message: bytes, asker: Asker) -> None:
        assert self._transport is not None
        self._transport.sendto(message, asker)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def error_received(self, error: Exception) -> None:
        log.debug("a datagram could not be sent", error=error)


def _sockets(address: str) -> tuple[socket.socket, socket.socket]:
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


def _family(address: str) -> str:
    return "2" if ":" in address else "1"


def _kind(question: Question) -> str:
    return wire.TYPES.get(question.type, "other")


def _answered(question: Question, answer: Answer, limit: int, plugin: str = KUBERNETES) -> Answered:
    written = wire.write_answer(question, answer, limit)
    return Answered(written, _kind(question), wire.rcode_name(answer.rcode), plugin)


def _format_error(message: bytes) -> bytes:
    """FORMERR to what may be a question, nothing to what may be an answer (or they would go on
    answering each other)."""
    if len(message) < wire.HEADER.size or message[2] & 0x80:
        return b""
    number = message[:2]
    return number + struct.pack(">HHHHH", 0x8000 | wire.FORMERR, 0, 0, 0, 0)


def _forward(question: Question, message: bytes, limit: int) -> bytes:
    """Another server's answer under the asker's own number and spelling."""
    end = wire.HEADER.size + len(question.raw)
    if message[wire.HEADER.size : end].lower() != question.raw.lower():
        return wire.write_answer(question, Answer(wire.SERVFAIL, authoritative=False), limit)
    head = bytearray(message[: wire.HEADER.size])
    struct.pack_into(">H", head, 0, question.id)
    opt = wire.opt() if question.edns else b""
    rest = message[end:]
    if limit and len(message) + len(opt) > limit:
        head[2] |= 0x02
        struct.pack_into(">HHH", head, 6, 0, 0, 0)
        rest = b""
    if opt:
        more = struct.unpack_from(">H", head, 10)[0] + 1
        struct.pack_into(">H", head, 10, more)
    return bytes(head) + question.raw + rest + opt
