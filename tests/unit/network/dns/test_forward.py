import asyncio
import contextlib
import random

import pytest

from sampan.core.metrics import Metrics
from sampan.network.dns import wire
from sampan.network.dns.forward import Forwarder, ForwardSettings
from sampan.network.dns.metrics import DnsMetrics
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

MACHINE, CORP, DEEP = ("192.0.2.1", 53), ("10.0.0.53", 5353), ("10.0.0.54", 53)


def forwarder_of(settings):
    return Forwarder(settings, LoopClock(), random.Random(1), DnsMetrics(Metrics()))


def test_names_in_a_stub_domain_are_asked_of_its_own_servers():
    stubs = {"corp.example": (CORP,), "deep.corp.example": (DEEP,)}
    forwarder = forwarder_of(ForwardSettings((MACHINE,), stubs))
    assert forwarder.servers_for("www.corp.example") == (CORP,)
    assert forwarder.servers_for("corp.example") == (CORP,)
    assert forwarder.servers_for("a.deep.corp.example") == (DEEP,)
    assert forwarder.servers_for("www.example") == (MACHINE,)
    assert forwarder.servers_for("notcorp.example") == (MACHINE,)


class NameServer(asyncio.DatagramProtocol):
    """Says NXDOMAIN, or nothing."""

    def __init__(self, *, talks):
        self.talks, self.asked = talks, []

    def connection_made(self, transport):
        self.transport = transport
        self.address = transport.get_extra_info("sockname")[:2]

    def datagram_received(self, data, address):
        question = wire.read_question(data)
        self.asked.append(question.name)
        if self.talks:
            answer = wire.Answer(wire.NXDOMAIN, authoritative=False)
            self.transport.sendto(wire.write_answer(question, answer), address)


@contextlib.asynccontextmanager
async def name_servers(*talks):
    loop, found = asyncio.get_running_loop(), []
    for each in talks:
        _, server = await loop.create_datagram_endpoint(
            lambda each=each: NameServer(talks=each), local_addr=("127.0.0.1", 0)
        )
        found.append(server)
    yield found
    for server in found:
        server.transport.close()


@pytest.mark.slow
def test_a_server_that_keeps_quiet_is_asked_last_from_then_on():
    async def story():
        async with name_servers(False, True) as [quiet, talking]:
            servers = (quiet.address, talking.address)
            forwarder = forwarder_of(ForwardSettings(servers, try_seconds=0.1, all_seconds=60))
            for name in ("a.example", "b.example", "c.example"):
                found = await forwarder.ask(name, wire.A)
                assert found.rcode == wire.NXDOMAIN
            assert quiet.asked == ["a.example"]
            assert talking.asked == ["a.example", "b.example", "c.example"]
            await forwarder.close()

    virtual_time.run(story())


@pytest.mark.slow
def test_no_further_server_is_asked_when_the_time_for_all_is_over():
    async def story():
        async with name_servers(False, False, False, False) as servers:
            addresses = tuple(server.address for server in servers)
            settings = ForwardSettings(addresses, try_seconds=0.2, all_seconds=0.3)
            forwarder = forwarder_of(settings)
            found = await forwarder.ask("a.example", wire.A)
            assert (found.message, found.rcode) == (b"", wire.SERVFAIL)
            assert sum(len(server.asked) for server in servers) == 2
            await forwarder.close()

    virtual_time.run(story())
