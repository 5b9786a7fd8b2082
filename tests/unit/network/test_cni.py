import ipaddress
import itertools
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sampan.network import cni
from sampan.network.cni import PodNetwork

NETWORK = PodNetwork("sampan3", "10.244.3.0/24")


def test_every_candidate_has_a_bridge_and_a_subnet_of_its_own():
    all_of_them = list(cni.candidates())
    assert len({one.bridge for one in all_of_them}) == len(all_of_them)
    assert len({one.subnet for one in all_of_them}) == len(all_of_them)
    assert max(len(one.bridge) for one in all_of_them) <= 15
    assert all_of_them[0] == PodNetwork("sampan0", "10.244.0.0/24")


def test_a_range_of_one_s_own_is_never_left():
    chosen = list(cni.candidates("10.50.0.0/22"))
    assert [each.subnet for each in chosen] == [f"10.50.{number}.0/24" for number in range(4)]
    assert [each.bridge for each in chosen] == [f"sampan{number}" for number in range(4)]


def test_the_gateway_is_the_subnet_s_first_address():
    assert NETWORK.gateway == "10.244.3.1"


@given(st.ip_addresses(v=4), st.integers(1, 32))
def test_a_free_subnet_shares_no_address_with_any_route(address, length):
    route = ipaddress.IPv4Network(f"{address}/{length}", strict=False)
    for network in itertools.islice(cni.candidates(), 0, 1024, 97):
        overlaps = ipaddress.IPv4Network(network.subnet).overlaps(route)
        assert cni.is_free(network, [route]) != overlaps


def test_the_default_route_takes_no_subnet():
    assert cni.is_free(NETWORK, [ipaddress.IPv4Network("0.0.0.0/0")])


def test_the_kernel_s_routing_table_is_read():
    table = (
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "br0\t0003F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    )
    assert [str(route) for route in cni.parse_routes(table)] == ["0.0.0.0/0", "10.244.3.0/24"]


def test_pods_are_masqueraded_by_the_plugin_only_where_no_rule_of_ours_is():
    plain = cni.conflist(NETWORK, "/data/ipam", masquerade=False)
    (bridge,) = plain["plugins"]
    assert "ipMasq" not in bridge
    assert bridge["bridge"] == "sampan3"
    assert bridge["ipam"]["dataDir"] == "/data/ipam"
    assert cni.conflist(NETWORK, "/d", masquerade=True)["plugins"][0]["ipMasq"] is True
    assert json.dumps(plain)


def test_the_rules_of_a_network_are_in_a_table_of_its_own_and_know_its_pods():
    place = cni.proxy_place(NETWORK, ["10.96.0.0/12"])
    assert place.table == "sampan3-pods"
    assert place.pod_cidrs == place.cluster_cidrs == ("10.244.3.0/24",)
    assert place.service_cidrs == ("10.96.0.0/12",)


def test_iptables_gets_only_the_rules_that_are_needed():
    [guard] = cni.iptables_rules(NETWORK, masquerade=False, forward=False)
    assert guard[:2] == ["filter", "INPUT"]
    rules = cni.iptables_rules(NETWORK, masquerade=True, forward=True)
    assert [rule[:2] for rule in rules] == [
        ["filter", "INPUT"],
        ["nat", "POSTROUTING"],
        ["filter", "FORWARD"],
        ["filter", "FORWARD"],
    ]


def test_pods_do_not_reach_the_loopback_of_their_machine():
    """An attack: host ports switch on route_localnet, and a pod writes packets to 127.0.0.1."""
    [guard] = cni.iptables_rules(NETWORK, masquerade=False, forward=False)
    text = " ".join(guard)
    assert f"-i {NETWORK.bridge} -d 127.0.0.0/8" in text
    assert "! --ctstate RELATED,ESTABLISHED,DNAT" in text
    assert text.endswith("-j DROP")


def test_the_mark_of_a_bridge_tells_data_directories_apart():
    assert cni.owner_mark(Path("/a")) != cni.owner_mark(Path("/b"))
    assert cni.owner_mark(Path("/a")) == cni.owner_mark(Path("/x/../a"))


def test_only_pods_with_host_ports_pay_for_the_plugin_that_maps_them():
    _, ports = cni.conflist(NETWORK, "/d", masquerade=False, host_ports=True)["plugins"]
    assert ports["capabilities"] == {"portMappings": True}


SAVED = """*nat
:PREROUTING ACCEPT [0:0]
:CNI-DN-aaa - [0:0]
:CNI-DN-bbb - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-MASQ - [0:0]
:CNI-HOSTPORT-SETMARK - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-A CNI-DN-aaa -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.244.3.2:80
-A CNI-DN-bbb -p tcp -m tcp --dport 8081 -j DNAT --to-destination 10.244.4.2:80
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"sampan\\"" -j CNI-DN-aaa
-A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 8081 -j CNI-DN-bbb
COMMIT
"""


def test_ports_of_other_networks_stay_mapped():
    commands = cni.portmap_leftovers(SAVED, "10.244.3.0/24")
    assert commands == [
        [
            *("-D", "CNI-HOSTPORT-DNAT", "-p", "tcp", "-m", "comment", "--comment"),
            *('dnat name: "sampan"', "-j", "CNI-DN-aaa"),
        ],
        ["-F", "CNI-DN-aaa"],
        ["-X", "CNI-DN-aaa"],
    ]


def test_the_last_one_takes_the_common_chains_along():
    alone = "\n".join(line for line in SAVED.splitlines() if "bbb" not in line)
    commands = cni.portmap_leftovers(alone, "10.244.3.0/24")
    assert ["-X", "CNI-HOSTPORT-SETMARK"] in commands
    assert [
        "-D",
        "PREROUTING",
        "-m",
        "addrtype",
        "--dst-type",
        "LOCAL",
        "-j",
        "CNI-HOSTPORT-DNAT",
    ] in commands
    assert cni.portmap_leftovers("*nat\nCOMMIT\n", "10.244.3.0/24") == []


def test_pods_with_limited_bandwidth_get_the_plugin_that_limits_it():
    """[N8]"""
    *_, last = cni.conflist(NETWORK, "/d", masquerade=False, host_ports=True, bandwidth=True)[
        "plugins"
    ]
    assert last == {"type": "bandwidth", "capabilities": {"bandwidth": True}}
