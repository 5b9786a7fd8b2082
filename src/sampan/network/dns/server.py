"""The name server of a node: the cluster's names from watch events, all others from elsewhere.

Job: listen by UDP and TCP, answer, and hear of Services and EndpointSlices.
Invariant: an answer about the cluster is made of what the informers know now: a change forgets
    every answer that was made before it.
Owner: one per node; the zone and the answers that were made are written here only.
"""

import asyncio
import random
import socket
import struct
from collections.abc import Callable, Iterable
from typing import cast

from sampan.api.objects import Obj, key_of, labels_of, namespace_of
from sampan.api.resources import ENDPOINT_SLICES, SERVICES
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.network.dns import wire
from sampan.network.dns.forward import Forwarder, ForwardSettings
from sampan.network.dns.wire import Answer, BadMessage, Question, Record
from sampan.network.dns.zone import ClusterZone
from sampan.network.socket_buffers import widen_receiving

SERVICE_NAME = "kubernetes.io/service-name"
MOST_ANSWERS = 20_000
MOST_CHASES = 8
TCP_IDLE_SECONDS = 10.0
PORT = 53
WAITING_BYTES = 4 << 20
_QUERY_FLAGS = 0x0100  # an ordinary question that wants recursion
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
        self._slices = informers.of(ENDPOINT_SLICES, indices={"named": _by_service})
        self._forwarder = Forwarder(settings.forward, clock, rng)
        # Question as bytes, without its number → answer likewise.
        self._answers: dict[bytes, bytes] = {}
        self._tasks = Tasks("dns")
        self._transports: list[asyncio.DatagramTransport] = []
        self._listeners: list[asyncio.Server] = []
        self.endpoints: list[tuple[str, int]] = []  # where it listens
        self._requests = metrics.counter(
            "coredns_dns_requests_total", "Questions, by how they came and what for.",
            ("proto", "type"),
        )  # fmt: skip
        self._responses = metrics.counter(
            "coredns_dns_responses_total", "Answers, by their code.", ("rcode",)
        )
        self._quick = {"udp": 0}
        hits = metrics.gauge("coredns_cache_hits_total", "Answers from the cache.", ("type",))
        misses = metrics.gauge("coredns_cache_misses_total", "Questions that were passed on.")
        hits.read_from(
            lambda: {
                ("cluster",): float(self._quick["udp"]),
                ("forward",): float(self._forwarder.hits),
            }
        )
        misses.read_from(lambda: {(): float(self._forwarder.misses)})

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
            transport, _ = await loop.create_datagram_endpoint(
                lambda: _Datagrams(self.quick_answer, self._answer_later), sock=datagrams
            )
            self._transports.append(transport)
            self._listeners.append(await asyncio.start_server(self._serve_stream, sock=stream))

    async def stop(self) -> None:
        for transport in self._transports:
            transport.close()
        for listener in self._listeners:
            listener.close()
        await self._tasks.stop()
        await self._forwarder.close()

    def quick_answer(self, message: bytes) -> bytes | None:
        """What needs nobody else: nearly every question about the cluster."""
        known = self._answers.get(message[2:])
        if known is not None:
            self._quick["udp"] += 1
            return message[:2] + known
        try:
            question = wire.read_question(message)
        except BadMessage:
            return _format_error(message)
        answer = self._from_zone(question)
        if answer is None:
            return None
        self._count("udp", question, answer.rcode)
        written = wire.write_answer(question, answer, question.udp_size)
        if len(self._answers) >= MOST_ANSWERS:
            self._answers.clear()
        self._answers[message[2:]] = written[2:]
        return written

    async def answer(self, message: bytes, *, udp: bool) -> bytes:
        """Whatever is needed for it; empty where there is nothing to say."""
        try:
            question = wire.read_question(message)
        except BadMessage:
            return _format_error(message) or b""
        limit = question.udp_size if udp else 0
        answer = self._from_zone(question) or await self._from_elsewhere(question)
        if isinstance(answer, bytes):
            self._count("udp" if udp else "tcp", question, answer[3] & 0xF)
            return _forward(question, answer, limit)
        self._count("udp" if udp else "tcp", question, answer.rcode)
        return wire.write_answer(question, answer, limit)

    def _count(self, proto: str, question: Question, rcode: int) -> None:
        self._requests.add(proto, wire.TYPES.get(question.type, "other"))
        self._responses.add(wire.RCODES.get(rcode, str(rcode)))

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

    async def _from_elsewhere(self, question: Question) -> Answer | bytes:
        if self.zone.is_mine(question.name):
            return await self._chase(question)
        if question.cls != wire.IN:
            return Answer(wire.REFUSED, authoritative=False)
        message, reply = await self._forwarder.ask(question.name, question.type)
        if not message:
            return Answer(reply.rcode, authoritative=False)
        return message

    async def _chase(self, question: Question) -> Answer:
        """An ExternalName: its alias, and what that stands for."""
        found: list[Record] = []
        name = question.name
        for _ in range(MOST_CHASES):
            if not self.zone.is_mine(name):
                _, reply = await self._forwarder.ask(name, question.type)
                found += reply.records
                return Answer(reply.rcode, tuple(found))
            here = self.zone.answer(name, question.type)
            found += here.answers
            aliases = [each for each in here.answers if each.type == wire.CNAME]
            if not aliases:
                return Answer(here.rcode, tuple(found), here.authority, here.additional)
            name = str(aliases[0].data)
        return Answer(wire.SERVFAIL, tuple(found))

    def _answer_later(self, message: bytes, send: Callable[[bytes], None]) -> None:
        async def work() -> None:
            written = await self.answer(message, udp=True)
            if written:
                send(written)

        self._tasks.start("question", work())

    async def _serve_stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                async with asyncio.timeout(TCP_IDLE_SECONDS):
                    length = int.from_bytes(await reader.readexactly(2), "big")
                    message = await reader.readexactly(length)
                written = await self.answer(message, udp=False)
                if not written:
                    return
                writer.write(len(written).to_bytes(2, "big") + written)
                await writer.drain()
        except (asyncio.IncompleteReadError, TimeoutError, OSError):
            return
        finally:
            writer.close()

    def _service_changed(self, old: Obj | None, new: Obj | None) -> None:
        self._put(key_of(new or old or {}))

    def _slice_changed(self, old: Obj | None, new: Obj | None) -> None:
        services = {key for obj in (old, new) if obj for key in _by_service(obj)}
        for key in services:
            self._put(key)

    def _put(self, key: str) -> None:
        service = self._services.cache.get(key)
        if self.zone.put(key, service, self._slices.cache.by("named", key)):
            self._answers.clear()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(
        self,
        quick: Callable[[bytes], bytes | None],
        later: Callable[[bytes, Callable[[bytes], None]], None],
    ) -> None:
        self._quick, self._later = quick, later
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not of that class in every loop, though always of its kind.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        transport = self._transport
        assert transport is not None
        answer = self._quick(data)
        if answer is None:
            self._later(data, lambda written: transport.sendto(written, address))
        elif answer:
            transport.sendto(answer, address)

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


def _format_error(message: bytes) -> bytes | None:
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


def _by_service(obj: Obj) -> Iterable[str]:
    name = labels_of(obj).get(SERVICE_NAME)
    return (f"{namespace_of(obj)}/{name}",) if name else ()
