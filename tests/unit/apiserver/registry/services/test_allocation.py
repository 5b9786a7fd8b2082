import random
from contextlib import asynccontextmanager

import pytest

from sampan.api.errors import Invalid
from sampan.api.objects import name_of
from sampan.apiserver.registry.generic import Registry
from sampan.apiserver.registry.services.allocated import AllAllocated
from sampan.apiserver.registry.services.allocation import Allocator, ServiceRanges
from sampan.apiserver.registry.services.service_claims import IP_ADDRESSES, Claims
from sampan.apiserver.registry.services.service_strategy import prepare_update
from sampan.apiserver.storage.store_metrics import StoreMetrics
from sampan.apiserver.watch.watch_cache import WatchCache
from sampan.core.holding import Hold
from sampan.core.metrics import Metrics
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

PORTS = range(30000, 30004)


def service(name, **spec):
    return {"metadata": {"name": name, "namespace": "d"}, "spec": spec}


class Server:
    """What a server gives addresses with; two of them may share a store."""

    def __init__(self, store, cidrs=("10.0.0.0/29",)):
        self.cache = WatchCache(store, LoopClock())
        measured = StoreMetrics(Metrics(), LoopClock())
        self.registry = Registry(store, self.cache, None, measured)
        self.services, rng = [], random.Random(1)
        self.allocated = AllAllocated(lambda: self.services)
        self.claims = Claims(self.registry, PORTS, LoopClock(), rng)
        self.cidrs = []
        ranges = ServiceRanges(cidrs, lambda: self.cidrs)
        self.allocator = Allocator(ranges, PORTS, self.allocated, self.claims, rng)

    async def give(self, new, old=None, *, dry_run=False):
        async with Hold() as hold:
            await self.allocator.allocate(new, old, dry_run, hold)
            hold.commit()
            return new["spec"]

    def addresses(self):
        return {name_of(one) for one in self.registry.find_all(IP_ADDRESSES)}

    async def ports(self):
        found = []
        await self.claims.change_ports(lambda bits: found.append(bits) or bits)
        return self.claims.ports_of(found[-1])


@asynccontextmanager
async def two_servers():
    store = MemoryStore(LoopClock())
    servers = [Server(store), Server(store)]
    for server in servers:
        await server.cache.start()
    try:
        yield servers
    finally:
        for server in servers:
            await server.cache.stop()
        await store.close()


def on_servers(story):
    async def main():
        async with two_servers() as (one, two):
            await story(one, two)

    virtual_time.run(main())


def test_addresses_are_given_until_there_are_none_whichever_server_gives_them():
    async def story(one, two):
        specs = []
        for number in range(5):  # eight, less network, kubernetes and broadcast
            server = (one, two)[number % 2]
            specs.append(await server.give(service(f"s{number}", type="ClusterIP")))
        assert {spec["clusterIP"] for spec in specs} == {f"10.0.0.{n}" for n in (2, 3, 4, 5, 6)}
        with pytest.raises(Invalid, match="range is full"):
            await one.give(service("more", type="ClusterIP"))

    on_servers(story)


def test_an_address_is_an_object_that_names_its_service():
    async def story(one, two):
        await one.give(service("a", type="ClusterIP", clusterIP="10.0.0.3"))
        found = one.registry.find(IP_ADDRESSES, "", "10.0.0.3")
        parent = {"group": "", "resource": "services", "namespace": "d", "name": "a"}
        assert found["spec"] == {"parentRef": parent}
        assert found["metadata"]["labels"] == {
            "ipaddress.kubernetes.io/ip-family": "IPv4",
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        }

    on_servers(story)


def test_what_another_server_gave_is_refused_and_not_given_back_by_mistake():
    async def story(one, two):
        ports = [{"port": 80, "nodePort": 30001}]
        await one.give(service("a", type="NodePort", clusterIP="10.0.0.3", ports=ports))
        with pytest.raises(Invalid, match="provided IP is already allocated"):
            await two.give(service("b", clusterIP="10.0.0.3"))
        with pytest.raises(Invalid, match="provided port is already allocated"):
            await two.give(service("b", type="NodePort", ports=[dict(ports[0])]))
        assert two.addresses() == {"10.0.0.3"}
        assert await two.ports() == {30001}

    on_servers(story)


def test_a_refused_write_gives_back_what_was_taken_for_it():
    async def story(one, two):
        new = service("a", type="NodePort", ports=[{"port": 80}])
        async with Hold() as hold:
            await one.allocator.allocate(new, None, False, hold)
        assert new["spec"]["clusterIP"]
        assert one.addresses() == set()
        assert await one.ports() == set()

    on_servers(story)


def test_a_write_of_unknown_outcome_keeps_what_was_taken_for_it():
    async def story(one, two):
        new = service("a", type="NodePort", ports=[{"port": 80}])
        async with Hold() as hold:
            await one.allocator.allocate(new, None, False, hold)
            hold.doubt()
        assert one.addresses() == {new["spec"]["clusterIP"]}
        assert len(await one.ports()) == 1

    on_servers(story)


def test_a_dry_run_takes_nothing():
    async def story(one, two):
        new = service("a", type="NodePort", ports=[{"port": 80}])
        assert (await one.give(new, dry_run=True))["ports"][0]["nodePort"] in PORTS
        assert one.addresses() == set()
        assert await one.ports() == set()

    on_servers(story)


def test_wishes_are_checked():
    async def story(one, two):
        one.services = [service("a", clusterIP="10.0.0.3", ports=[{"nodePort": 30001}])]
        spec = await one.give(service("b", clusterIP="10.0.0.4"))
        assert spec["clusterIP"] == "10.0.0.4"
        with pytest.raises(Invalid, match="provided IP is already allocated"):
            await one.give(service("c", clusterIP="10.0.0.3"))
        with pytest.raises(Invalid, match="does not match the current range"):
            await one.give(service("c", clusterIP="10.9.0.3"))
        assert (await one.give(service("c", clusterIP="None")))["clusterIPs"] == ["None"]
        ports = [{"port": 80, "nodePort": 30001}]
        with pytest.raises(Invalid, match="provided port is already allocated"):
            await one.give(service("d", type="NodePort", ports=ports))
        ports = [{"port": 80, "nodePort": 80}]
        with pytest.raises(Invalid, match="30000-30003"):
            await one.give(service("e", type="NodePort", ports=ports))

    on_servers(story)


def test_node_ports_are_distinct_and_bounded():
    async def story(one, two):
        ports = [{"port": n} for n in range(4)]
        spec = await one.give(service("a", type="NodePort", ports=ports))
        assert {one["nodePort"] for one in spec["ports"]} == set(PORTS)
        one.services = [service("a", **spec)]
        with pytest.raises(Invalid, match="range is full"):
            await one.give(service("b", type="LoadBalancer", ports=[{"port": 1}]))

    on_servers(story)


def test_a_local_load_balancer_has_a_port_for_health_checks():
    async def story(one, two):
        new = service("a", type="LoadBalancer", externalTrafficPolicy="Local", ports=[{"port": 1}])
        spec = await one.give(new)
        ports = {spec["healthCheckNodePort"], spec["ports"][0]["nodePort"]}
        assert len(ports) == 2
        assert await one.ports() == ports

    on_servers(story)


def test_a_change_of_type_takes_and_gives_back():
    async def story(one, two):
        old = service("a", type="ClusterIP", ports=[{"port": 80, "protocol": "TCP"}])
        await one.give(old)
        ip = old["spec"]["clusterIP"]
        new = service("a", type="NodePort", ports=[{"port": 80, "protocol": "TCP"}])
        prepare_update(new, old)
        await two.give(new, old)
        assert new["spec"]["clusterIP"] == ip
        assert await one.ports() == {new["spec"]["ports"][0]["nodePort"]}
        back = service("a", **{**new["spec"], "type": "ClusterIP"})
        back["spec"]["ports"] = [dict(port) for port in new["spec"]["ports"]]
        prepare_update(back, new)
        assert "nodePort" not in back["spec"]["ports"][0]
        await one.give(back, new)
        assert await one.ports() == set()
        name = service("a", **{**back["spec"], "type": "ExternalName", "externalName": "x.y"})
        prepare_update(name, back)
        assert "clusterIP" not in name["spec"]
        await one.give(name, back)
        assert one.addresses() == set()
        again = service("a", type="ClusterIP", ports=[{"port": 80}])
        prepare_update(again, name)
        await one.give(again, name)
        assert one.addresses() == {again["spec"]["clusterIP"]}
        await two.allocator.removed(again)
        await one.cache.fresh()
        assert one.addresses() == set()

    on_servers(story)


def test_external_names_have_no_address():
    async def story(one, two):
        spec = await one.give(service("a", type="ExternalName", externalName="x.y"))
        assert "clusterIP" not in spec

    on_servers(story)


def test_an_update_keeps_what_it_does_not_name():
    old = service(
        "a", type="NodePort", clusterIP="10.0.0.2", clusterIPs=["10.0.0.2"],
        ports=[{"port": 80, "protocol": "TCP", "nodePort": 30002}],
    )  # fmt: skip
    new = service("a", type="NodePort", ports=[{"port": 80, "protocol": "TCP"}])
    prepare_update(new, old)
    assert new["spec"]["clusterIP"] == "10.0.0.2"
    assert new["spec"]["ports"][0]["nodePort"] == 30002


RANGES = ("10.0.0.0/29", "fd00:96::/112")


def on_a_dual_stack_server(story):
    async def main():
        store = MemoryStore(LoopClock())
        server = Server(store, RANGES)
        await server.cache.start()
        try:
            await story(server)
        finally:
            await server.cache.stop()
            await store.close()

    virtual_time.run(main())


def test_a_service_of_two_families_has_an_address_of_each():
    async def story(server):
        spec = await server.give(service("a", type="ClusterIP", ipFamilyPolicy="PreferDualStack"))
        first, second = spec["clusterIPs"]
        assert spec["clusterIP"] == first
        assert first.startswith("10.0.0.")
        assert second.startswith("fd00:96::")
        assert server.addresses() == {first, second}
        found = server.registry.find(IP_ADDRESSES, "", second)
        assert found["metadata"]["labels"]["ipaddress.kubernetes.io/ip-family"] == "IPv6"
        spec = await server.give(service("b", type="ClusterIP", ipFamilies=["IPv6"]))
        assert [ip.startswith("fd00:96::") for ip in spec["clusterIPs"]] == [True]
        asked = {"clusterIP": "fd00:96::5", "clusterIPs": ["fd00:96::5", "10.0.0.5"]}
        spec = await server.give(service("c", **asked, ipFamilyPolicy="RequireDualStack"))
        assert spec["clusterIPs"] == ["fd00:96::5", "10.0.0.5"]
        with pytest.raises(Invalid, match="does not match the current range"):
            await server.give(service("d", clusterIP="fd00:97::5", clusterIPs=["fd00:97::5"]))

    on_a_dual_stack_server(story)


def test_a_second_address_comes_and_goes_with_the_policy():
    async def story(server):
        old = service("a", type="ClusterIP")
        await server.give(old)
        first = old["spec"]["clusterIP"]
        dual = service("a", type="ClusterIP", ipFamilyPolicy="RequireDualStack")
        prepare_update(dual, old)
        assert (await server.give(dual, old))["clusterIPs"][0] == first
        assert server.addresses() == set(dual["spec"]["clusterIPs"])
        # A client that knows clusterIP alone keeps both.
        plain = service("a", type="ClusterIP", clusterIP=first, sessionAffinity="ClientIP")
        prepare_update(plain, dual)
        assert (await server.give(plain, dual))["clusterIPs"] == dual["spec"]["clusterIPs"]
        single = service("a", type="ClusterIP", ipFamilyPolicy="SingleStack")
        prepare_update(single, plain)
        assert (await server.give(single, plain))["clusterIPs"] == [first]
        assert single["spec"]["ipFamilies"] == ["IPv4"]
        assert server.addresses() == {first}

    on_a_dual_stack_server(story)


def test_where_the_second_range_is_used_up_the_first_address_is_given_back():
    async def story(server):
        taken = [f"10.0.0.{number}" for number in range(2, 7)]
        server.services = [service("x", clusterIPs=taken)]
        turned = service("a", ipFamilies=["IPv6", "IPv4"], ipFamilyPolicy="RequireDualStack")
        with pytest.raises(Invalid, match="range is full"):
            await server.give(turned)
        assert server.addresses() == set()

    on_a_dual_stack_server(story)


def test_another_range_gives_when_the_own_one_is_full_and_what_is_asked_for():
    async def story(one, two):
        one.cidrs = [
            {"metadata": {}, "spec": {"cidrs": ["10.0.0.0/29"]}},
            {"metadata": {}, "spec": {"cidrs": ["10.7.0.0/30"]}},
        ]
        asked = await one.give(service("asked", type="ClusterIP", clusterIP="10.7.0.2"))
        assert asked["clusterIPs"] == ["10.7.0.2"]
        given = [await one.give(service(f"s{number}", type="ClusterIP")) for number in range(6)]
        addresses = [spec["clusterIP"] for spec in given]
        assert sorted(addresses[:5]) == [f"10.0.0.{n}" for n in (2, 3, 4, 5, 6)]
        assert addresses[5:] == ["10.7.0.1"]
        with pytest.raises(Invalid, match="range is full"):
            await one.give(service("more", type="ClusterIP"))
        with pytest.raises(Invalid, match="does not match the current range"):
            await one.give(service("outside", type="ClusterIP", clusterIP="10.7.0.9"))

    on_servers(story)
