"""The name server over real sockets on loopback, with another name server of ours behind it."""

import asyncio
import random

import dns.flags
import dns.message
import dns.rrset
import pytest

from sampan.api.resources import SERVICES
from sampan.client.informer import Informers
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import all_of
from sampan.network.dns.forward import ForwardSettings
from sampan.network.dns.server import ClusterDns, DnsSettings
from tests.support.worlds.small_api import SmallApi

pytestmark = pytest.mark.slow


class Elsewhere(asyncio.DatagramProtocol):
    """Knows www.example.org, keeps quiet about others, and counts."""

    def __init__(self):
        self.asked = []

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        question = dns.message.from_wire(data)
        name = question.question[0].name.to_text()
        self.asked.append(name)
        answer = dns.message.make_response(question)
        if name == "www.example.org.":
            answer.answer.append(dns.rrset.from_text(name, 60, "IN", "A", "192.0.2.80"))
        elif name == "silent.example.org.":
            return
        else:
            answer.set_rcode(3)
        # Somebody guesses: the number is wrong, then the question.
        self.transport.sendto(bytes([data[0] ^ 1]) + answer.to_wire()[1:], address)
        self.transport.sendto(answer.to_wire(), address)


def story(test):
    async def run():
        clock = SystemClock()
        api = SmallApi(clock)
        informers = Informers(api, clock=clock)
        elsewhere = Elsewhere()
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: elsewhere, local_addr=("127.0.0.1", 0)
        )
        forward = ForwardSettings((transport.get_extra_info("sockname")[:2],), try_seconds=60)
        settings = DnsSettings(("127.0.0.1",), service_addresses=("10.96.0.10",), forward=forward)
        metrics = Metrics()
        server = ClusterDns(settings, informers, clock, metrics, random.Random(1))
        informers.start()
        await server.start()
        try:
            await test(server, api, elsewhere, metrics)
        finally:
            await server.stop()
            await informers.stop()
            transport.close()

    def test_run():
        asyncio.run(run())

    test_run.__name__ = test.__name__
    return test_run


async def ask(server, name, kind="A", **how):
    message = dns.message.make_query(name, kind, **how)
    answer = await server.answer(message.to_wire(), udp=True)
    return dns.message.from_wire(answer.message, one_rr_per_rrset=True)


async def asked_by_udp(server, name):
    """Over its socket: with what it remembers."""
    answer = asyncio.get_running_loop().create_future()

    class Asker(asyncio.DatagramProtocol):
        def datagram_received(self, data, _address):
            answer.set_result(dns.message.from_wire(data))

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        Asker, remote_addr=server.endpoints[0]
    )
    transport.sendto(dns.message.make_query(name, "A").to_wire())
    async with asyncio.timeout(60):
        found = await answer
    transport.close()
    return found


def addresses(answer):
    return [each[0].to_text() for each in answer.answer]


async def put(api, name, **spec):
    obj = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
    await api.create(SERVICES, obj, "default")


async def resolved(server, name):
    async with asyncio.timeout(60):
        while not (found := addresses(await ask(server, name))):
            await asyncio.sleep(0)
    return found


@story
async def test_a_new_service_resolves_as_soon_as_it_is_heard_of(server, api, *_):
    assert (await ask(server, "web.default.svc.cluster.local")).rcode() == 3
    await put(api, "web", clusterIP="10.96.0.5")
    assert await resolved(server, "web.default.svc.cluster.local") == ["10.96.0.5"]
    for _ in range(2):  # made, then remembered
        answer = await asked_by_udp(server, "WEB.default.svc.cluster.local")
        assert addresses(answer) == ["10.96.0.5"]
    await api.delete(SERVICES, "default", "web")
    async with asyncio.timeout(60):
        while (await asked_by_udp(server, "WEB.default.svc.cluster.local")).rcode() != 3:
            await asyncio.sleep(0)


@story
async def test_other_names_are_asked_elsewhere_once(server, api, elsewhere, *_):
    assert not api.objects(SERVICES)
    answers = await all_of(ask(server, "www.example.org") for _ in range(5))
    assert {tuple(addresses(answer)) for answer in answers} == {("192.0.2.80",)}
    assert elsewhere.asked == ["www.example.org."]
    assert answers[0].edns == -1
    assert (await ask(server, "www.example.org", use_edns=0)).edns == 0
    assert (await ask(server, "nobody.example.org")).rcode() == 3


@story
async def test_an_external_name_is_followed(server, api, *_):
    await put(api, "out", type="ExternalName", externalName="www.example.org")
    found = await resolved(server, "out.default.svc.cluster.local")
    assert found == ["www.example.org.", "192.0.2.80"]


@story
async def test_an_external_name_that_leads_to_itself_ends(server, api, *_):
    name = "loop.default.svc.cluster.local"
    await put(api, "loop", type="ExternalName", externalName=name)
    await resolved(server, name)
    assert (await ask(server, name)).rcode() == 2


@story
async def test_tcp_and_udp_say_the_same(server, *_):
    message = dns.message.make_query("dns-version.cluster.local", "TXT").to_wire()
    reader, writer = await asyncio.open_connection(*server.endpoints[0])
    for _ in range(2):
        writer.write(len(message).to_bytes(2, "big") + message)
        length = int.from_bytes(await reader.readexactly(2), "big")
        answer = await reader.readexactly(length)
        assert answer == (await server.answer(message, udp=True)).message
    writer.close()


@story
async def test_garbage_is_refused_and_answers_are_not_answered(server, *_):
    assert server.quick_answer(b"\x01\x02\x01\0\0\x01").message == b""
    asked = dns.message.make_query("a.b", "A").to_wire()
    assert dns.message.from_wire(server.quick_answer(asked[:-3]).message).rcode() == 1
    answered = dns.message.make_response(dns.message.from_wire(asked)).to_wire()
    assert server.quick_answer(answered).message == b""
    update = bytearray(asked)
    update[2] |= 5 << 3
    assert server.quick_answer(bytes(update)).message[3] & 0xF == 4


@story
async def test_when_nobody_answers_it_says_so(server, *_):
    assert (await ask(server, "silent.example.org")).rcode() == 2


@story
async def test_every_question_is_counted_under_coredns_names(server, api, elsewhere, metrics):
    await put(api, "web", clusterIP="10.96.0.5")
    await resolved(server, "web.default.svc.cluster.local")
    assert elsewhere.asked == []
    for name in ("web.default.svc.cluster.local", "nobody.cluster.local", "www.example.org"):
        for _ in range(3):  # made, and then from what was made before
            await asked_by_udp(server, name)
    counted = metrics.render().splitlines()
    served = 'server="dns://:53",zone=".",view=""'
    requests = f'coredns_dns_requests_total{{{served},proto="udp",family="1",type="A"}} 9'
    assert requests in counted
    for rcode, plugin, count in (("NOERROR", "kubernetes", 3), ("NXDOMAIN", "kubernetes", 3),
                                 ("NOERROR", "forward", 1), ("NOERROR", "cache", 2)):  # fmt: skip
        of_code = f'{served},rcode="{rcode}",plugin="{plugin}"'
        assert f"coredns_dns_responses_total{{{of_code}}} {count}" in counted
    assert f"coredns_dns_request_duration_seconds_count{{{served}}} 9" in counted
    cached = 'server="dns://:53",zones=".",view=""'
    assert f'coredns_cache_hits_total{{{cached},type="success"}} 2' in counted
    assert f"coredns_cache_misses_total{{{cached}}} 1" in counted
    assert f"coredns_cache_requests_total{{{cached}}} 3" in counted
    assert f'coredns_cache_entries{{{cached},type="success"}} 1' in counted
    assert any(line.startswith("coredns_proxy_request_duration_seconds_count") for line in counted)
