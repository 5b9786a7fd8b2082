"""The name server of a node: the cluster's names from watch events, all others from elsewhere.

Job: listen by UDP and TCP, answer, and hear of Services and EndpointSlices.
Invariant: an answer about the cluster is made of what the informers know now: a change forgets
    every answer that was made before it.
Owner: one per node; the zone and the answers that were made are written here only.
"""

import functools
import random
import struct

from sampan.api.objects import Obj, key_of, name_of
from sampan.api.resources import ENDPOINT_SLICES, SERVICES
from sampan.api.rules.endpoint_slices import services_of_slice
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.shares import Shares
from sampan.core.tasks import Tasks
from sampan.network.dns import wire
from sampan.network.dns.forward import Forwarder, ForwardSettings, TooBusy
from sampan.network.dns.listeners import Asker, Datagrams, Streams, sockets
from sampan.network.dns.metrics import (
    CACHE,
    FORWARD,
    KUBERNETES,
    Answered,
    Channel,
    DnsMetrics,
    Series,
)
from sampan.network.dns.wire import Answer, BadMessage, Question, Record
from sampan.network.dns.zone import ClusterZone, is_headless

MOST_CHASES = 8
MOST_UNDER_WAY, MOST_UNDER_WAY_OF_ONE = 2000, 250  # questions that somebody else has to answer
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
        self._clock, self._measures = clock, DnsMetrics(metrics)
        self._forwarder = Forwarder(settings.forward, clock, rng, self._measures)
        self._tasks = Tasks("dns")
        self._under_way = Shares(MOST_UNDER_WAY, MOST_UNDER_WAY_OF_ONE)
        self._datagrams: list[Datagrams] = []
        self._streams: list[Streams] = []
        self.endpoints: list[tuple[str, int]] = []  # where it listens

    async def start(self) -> None:
        """Listens when it returns, and knows every Service. Raises OSError."""
        self._services.on_change(self._service_changed)
        self._slices.on_change(self._slice_changed)
        await self._services.synced()
        await self._slices.synced()
        for address in self._settings.addresses:
            datagrams, stream = sockets(address)
            self.endpoints.append((address, stream.getsockname()[1]))
            by_datagram, by_stream = (Channel(sort, _family(address)) for sort in ("udp", "tcp"))
            self._datagrams.append(Datagrams(by_datagram, datagrams, self._receive))
            streams = Streams(functools.partial(self._answer_stream, by_stream))
            self._streams.append(streams)
            await streams.listen(stream)

    async def stop(self) -> None:
        for datagrams in self._datagrams:
            datagrams.close()
        for streams in self._streams:
            streams.close()
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
        try:
            found = await self._forwarder.ask(question.name, question.type)
        except TooBusy:  # as CoreDNS
            return _answered(question, Answer(wire.REFUSED, authoritative=False), limit, FORWARD)
        plugin = CACHE if found.known else FORWARD
        if not found.message:
            failure = Answer(found.rcode, authoritative=False)
            return _answered(question, failure, limit, plugin)
        rcode = wire.rcode_name(found.rcode)
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
                try:
                    there = await self._forwarder.ask(name, question.type)
                except TooBusy:
                    return Answer(wire.REFUSED, tuple(found))
                found += there.records()
                return Answer(there.rcode, tuple(found))
            here = self.zone.answer(name, question.type)
            found += here.answers
            aliases = [each for each in here.answers if each.type == wire.CNAME]
            if not aliases:
                return Answer(here.rcode, tuple(found), here.authority, here.additional)
            name = str(aliases[0].data)
        return Answer(wire.SERVFAIL, tuple(found))

    def _receive(self, datagrams: Datagrams, message: bytes, asker: Asker) -> None:
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
            if self._under_way.take(asker[0]):
                later = self._answer_later(datagrams, message, asker, started)
                self._tasks.start("question", later)
            else:
                datagrams.send(_refused(message), asker)
        elif answer.message:
            datagrams.send(answer.message, asker)
            series = self._note(datagrams.channel, answer, started)
            datagrams.remember(message, answer, series)

    async def _answer_later(
        self, datagrams: Datagrams, message: bytes, asker: Asker, started: float
    ) -> None:
        try:
            answer = await self.answer(message, udp=True)
        finally:
            self._under_way.give_back(asker[0])
        if answer.message:
            datagrams.send(answer.message, asker)
            self._note(datagrams.channel, answer, started)

    def _note(self, channel: Channel, answer: Answered, started: float) -> Series:
        series = self._measures.series(channel, answer)
        series.count += 1
        self._measures.took(self._clock.monotonic() - started)
        return series

    async def _answer_stream(self, channel: Channel, message: bytes, asker: str) -> bytes:
        """Empty: there is nothing to say."""
        started = self._clock.monotonic()
        if not self._under_way.take(asker):
            return _refused(message)
        try:
            answer = await self.answer(message, udp=False)
        finally:
            self._under_way.give_back(asker)
        if answer.message:
            self._note(channel, answer, started)
        return answer.message

    def _service_changed(self, old: Obj | None, new: Obj | None) -> None:
        key = key_of(new or old or {})
        if old is not None and new is not None and is_headless(old) and is_headless(new):
            return  # all that it has in the zone is its slices', by its name
        self._changed(self.zone.put(key, new, self._slices.cache.by("named", key)))

    def _slice_changed(self, old: Obj | None, new: Obj | None) -> None:
        name = name_of(new or old or {})
        now = set(services_of_slice(new)) if new else set()
        for key in {*now, *(services_of_slice(old) if old else ())}:
            service = self._services.cache.get(key)
            piece = new if key in now else None
            self._changed(self.zone.put_slice(key, service, name, piece))

    def _changed(self, anything: bool) -> None:
        if anything:
            for datagrams in self._datagrams:
                datagrams.made.clear()


def _family(address: str) -> str:
    return "2" if ":" in address else "1"


def _kind(question: Question) -> str:
    return wire.TYPES.get(question.type, "other")


def _answered(question: Question, answer: Answer, limit: int, plugin: str = KUBERNETES) -> Answered:
    written = wire.write_answer(question, answer, limit)
    return Answered(written, _kind(question), wire.rcode_name(answer.rcode), plugin)


def _refused(message: bytes) -> bytes:
    """REFUSED, of a question that was read, in as few bytes as it has."""
    flags = 0x8000 | (message[2] & 0x01) << 8 | wire.REFUSED
    end = wire.plain_length(message)
    if not end:
        return _format_error(message)
    return message[:2] + struct.pack(">HHHHH", flags, 1, 0, 0, 0) + message[12:end]


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
