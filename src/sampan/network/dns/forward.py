"""Questions about names beyond the cluster: asked of the machine's name servers, and remembered.

Job: the answer of one of several name servers, within a deadline; kept for as long as it holds.
Invariant: no answer is taken that is not to the question that was asked, from the server that was
    asked, with the number that it was asked under.
Invariant: the cache is bounded, in bytes, too; the same question is asked once, however many wait
    for it, and no more than so many at once.
Invariant: a server that kept quiet is asked last for a while, and nobody waits for longer than
    programs do.
"""

import asyncio
import random
import socket
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence

from sampan.core.bounded import Recent
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import Tasks
from sampan.network.dns.metrics import DENIAL, SUCCESS, DnsMetrics
from sampan.network.dns.wire import (
    NOERROR,
    NXDOMAIN,
    BadMessage,
    Record,
    Reply,
    aged,
    rcode_name,
    read_reply,
    without_opt,
    write_question,
)

TRY_SECONDS = 2.0
ROUNDS = 2
ALL_SECONDS = 5.0  # for all tries together: as CoreDNS, and as resolvers wait for one answer
QUIET_SECONDS = 10.0
MOST_SECONDS = 30  # as CoreDNS' cache in kubeadm's configuration
MOST_ANSWERS = 10_000
LARGEST_KEPT = 2048  # bytes of an answer: nearly all fit in one datagram
MOST_UNDER_WAY = 1000  # as kubeadm's configuration of CoreDNS
Upstream = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ForwardSettings:
    servers: tuple[Upstream, ...] = ()
    stub_domains: Mapping[str, tuple[Upstream, ...]] | None = None  # domain → its own servers
    try_seconds: float = TRY_SECONDS
    all_seconds: float = ALL_SECONDS


@dataclass(frozen=True, slots=True)
class _Kept:
    """As small as it gets: there are thousands of them."""

    message: bytes
    rcode: int
    sort: str
    ttl: int
    ttl_places: "array[int]"
    since: float


class TooBusy(Exception):
    """So many questions are under way that this one is not asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """The message as it came; empty, with SERVFAIL, where no server answered in time."""

    message: bytes
    rcode: int
    known: bool  # before it was asked for

    def records(self) -> tuple[Record, ...]:
        """Of the answer: A, AAAA, CNAME."""
        return read_reply(self.message).records if self.message else ()


class Forwarder:
    def __init__(
        self, settings: ForwardSettings, clock: Clock, rng: random.Random, measures: DnsMetrics
    ) -> None:
        self._settings, self._clock, self._rng = settings, clock, rng
        self._measures = measures
        self._kept: Recent[tuple[str, int], _Kept] = Recent(MOST_ANSWERS)
        self._asking: dict[tuple[str, int], asyncio.Task[_Kept]] = {}
        self._quiet: dict[Upstream, float] = {}  # until when each is asked last
        self._tasks = Tasks("name servers")
        measures.read_entries_from(self._entries)

    async def close(self) -> None:
        await self._tasks.stop()

    async def ask(self, name: str, kind: int) -> Found:
        """Older by as much as it was kept. Raises TooBusy."""
        key = (name, kind)
        now = self._clock.monotonic()
        kept, known = self._kept.get(key), True
        if kept is not None and now - kept.since < min(kept.ttl, MOST_SECONDS):
            self._measures.hit(kept.sort)
        else:
            known = False
            self._measures.missed()
            task = self._asking.get(key)
            if task is None:
                if len(self._asking) >= MOST_UNDER_WAY:
                    raise TooBusy
                task = self._asking[key] = self._tasks.start(name, self._ask(key))
                task.add_done_callback(lambda _: self._asking.pop(key, None))
            kept = await asyncio.shield(task)
        age = int(now - kept.since)
        message = aged(kept.message, kept.ttl_places, age) if age > 0 else kept.message
        return Found(message, kept.rcode, known)

    def servers_for(self, name: str) -> Sequence[Upstream]:
        """Of the longest stub domain that the name is in, else the machine's."""
        domain = name
        stubs = self._settings.stub_domains or {}
        while domain:
            if domain in stubs:
                return stubs[domain]
            domain = domain.partition(".")[2]
        return self._settings.servers

    async def _ask(self, key: tuple[str, int]) -> _Kept:
        name, kind = key
        started = self._clock.monotonic()
        for server in [*self._ordered(self.servers_for(name))] * ROUNDS:
            left = self._settings.all_seconds - (self._clock.monotonic() - started)
            if left <= 0:
                break
            try:
                message, reply = await self._ask_server(server, name, kind, left)
            except (OSError, TimeoutError, BadMessage):
                self._quiet[server] = self._clock.monotonic() + QUIET_SECONDS
                continue
            self._quiet.pop(server, None)
            kept = _kept(without_opt(message, reply), reply, self._clock.monotonic())
            if reply.rcode in (NOERROR, NXDOMAIN) and len(message) <= LARGEST_KEPT:
                self._kept[key] = kept
            return kept
        return _kept(b"", _SERVFAIL, self._clock.monotonic())

    def _ordered(self, servers: Sequence[Upstream]) -> list[Upstream]:
        now = self._clock.monotonic()
        return sorted(servers, key=lambda server: self._quiet.get(server, 0.0) > now)

    def _entries(self) -> Mapping[str, int]:
        return Counter(kept.sort for kept in self._kept.values())

    async def _ask_server(
        self, server: Upstream, name: str, kind: int, seconds: float
    ) -> tuple[bytes, Reply]:
        question = write_question(self._rng.getrandbits(16), name, kind)
        started = self._clock.monotonic()
        async with asyncio.timeout(min(seconds, self._settings.try_seconds)):
            message, reply = await _by_udp(server, question)
            if reply.truncated:
                message, reply = await _by_tcp(server, question)
        took = self._clock.monotonic() - started
        self._measures.asked_elsewhere(server, rcode_name(reply.rcode), took)
        return message, reply


def _kept(message: bytes, reply: Reply, now: float) -> _Kept:
    places = array("H", reply.ttl_places)
    return _Kept(message, reply.rcode, _sort(reply), reply.ttl, places, now)


def _sort(reply: Reply) -> str:
    return SUCCESS if reply.rcode == NOERROR and reply.has_answers else DENIAL


_SERVFAIL = Reply(0, 2, False, b"", (), 0, ())


def _check(question: bytes, message: bytes) -> Reply:
    reply = read_reply(message)
    asked = question[12 : 12 + len(reply.question)].lower()
    if message[:2] != question[:2] or (reply.question.lower() != asked):
        raise BadMessage("an answer to another question")
    return reply


class _Waiting(asyncio.DatagramProtocol):
    """A socket, and so a port, of its own for each question: harder to guess."""

    def __init__(self, question: bytes) -> None:
        self._question = question
        self.answer: asyncio.Future[tuple[bytes, Reply]] = (
            asyncio.get_running_loop().create_future()
        )

    def datagram_received(self, data: bytes, _address: object) -> None:
        try:
            reply = _check(self._question, data)
        except BadMessage:
            return  # somebody else's, or a forgery: the right one may still come
        if not self.answer.done():
            self.answer.set_result((data, reply))

    def error_received(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


async def _by_udp(server: Upstream, question: bytes) -> tuple[bytes, Reply]:
    transport, waiting = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Waiting(question), remote_addr=server
    )
    try:
        transport.sendto(question)
        return await waiting.answer
    finally:
        transport.close()


async def _by_tcp(server: Upstream, question: bytes) -> tuple[bytes, Reply]:
    reader, writer = await asyncio.open_connection(*server, family=socket.AF_UNSPEC)
    try:
        writer.write(len(question).to_bytes(2, "big") + question)
        length = int.from_bytes(await reader.readexactly(2), "big")
        message = await reader.readexactly(length)
        return message, _check(question, message)
    except asyncio.IncompleteReadError as error:
        raise BadMessage("the answer ends early") from error
    finally:
        writer.close()
