import ipaddress
import itertools
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sampan.network import bridge
from sampan.network.bridge import PodNetwork

NETWORK = PodNetwork("sampan3", "10.244.3.0/24")


def test_every_candidate_has_a_bridge_and_a_subnet_of_its_own():
    all_of_them = list(bridge.candidates())
    assert len({one.bridge for one in all_of_them}) == len(all_of_them)
    assert len({one.subnet for one in all_of_them}) == len(all_of_them)
    assert max(len(one.bridge) for one in all_of_them) <= 15
    assert all_of_them[0] == PodNetwork("sampan0", "10.244.0.0/24")


def test_a_range_of_one_s_own_is_never_left():
    chosen = list(bridge.candidates(["10.50.0.0/22"]))
    assert [each.subnet for each in chosen] == [f"10.50.{number}.0/24" for number in range(4)]
    assert [each.bridge for each in chosen] == [f"sampan{number}" for number in range(4)]


def test_the_gateway_is_the_subnet_s_first_address():
    assert NETWORK.gateway == "10.244.3.1"


@given(st.ip_addresses(v=4), st.integers(1, 32))
def test_a_free_subnet_shares_no_address_with_any_route(address, length):
    route = ipaddress.IPv4Network(f"{address}/{length}", strict=False)
    for network in itertools.islice(bridge.candidates(), 0, 1024, 97):
        overlaps = ipaddress.IPv4Network(network.subnet).overlaps(route)
        assert bridge.is_free(network, [route]) != overlaps


def test_the_default_route_takes_no_subnet():
    assert bridge.is_free(NETWORK, [ipaddress.IPv4Network("0.0.0.0/0")])


def test_the_kernel_s_routing_table_is_read():
    table = (
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "br0\t0003F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    )
    assert [str(route) for route in bridge.parse_routes(table)] == ["0.0.0.0/0", "10.244.3.0/24"]


def test_the_mark_of_a_bridge_tells_data_directories_apart():
    assert bridge.owner_mark(Path("/a")) != bridge.owner_mark(Path("/b"))
    assert bridge.owner_mark(Path("/a")) == bridge.owner_mark(Path("/x/../a"))


DUAL = PodNetwork("sampan3", "10.244.3.0/24", "fd00:10:244:3::/64")


def test_a_network_of_two_families_has_a_subnet_and_a_gateway_of_each():
    ranges = ["fd00:10:244::/56", "10.244.0.0/16"]
    chosen = list(itertools.islice(bridge.candidates(ranges), 5))
    assert chosen[3] == PodNetwork("sampan3", "fd00:10:244:3::/64", "10.244.3.0/24")
    assert DUAL.gateways == ("10.244.3.1", "fd00:10:244:3::1")
    assert DUAL.families == ("ip", "ip6")
    assert NETWORK.families == ("ip",)


def test_one_taken_subnet_is_enough_to_choose_others():
    route = ipaddress.ip_network("fd00:10:244::/48")
    assert not bridge.is_free(DUAL, [route])
    assert bridge.is_free(NETWORK, [route])
