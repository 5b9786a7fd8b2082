"""The network between nodes of one machine: ranges, addresses and rules, as text."""

import json

from sampan.network import node_lan
from sampan.network.bridge import PodNetwork

LAN = PodNetwork("smplan3", "10.89.3.0/24", "fd89:5a4d:0:3::/64")


def test_a_lan_has_a_bridge_and_a_range_of_the_same_number():
    first, second, *_ = node_lan.candidates(("ipv4",))
    assert first == PodNetwork("smplan0", "10.89.0.0/24")
    assert second == PodNetwork("smplan1", "10.89.1.0/24")


def test_a_lan_of_two_families_has_a_range_of_each():
    *_, last = node_lan.candidates(("ipv6", "ipv4"))
    assert last == PodNetwork("smplan255", "fd89:5a4d:0:ff::/64", "10.89.255.0/24")


def test_a_nodes_addresses_follow_from_its_number():
    assert node_lan.addresses_of(LAN, 1) == LAN.gateways
    assert node_lan.addresses_of(LAN, 7) == ("10.89.3.7", "fd89:5a4d:0:3::7")


def test_each_node_has_a_wire_of_its_own():
    wires = {node_lan.port_of(LAN, number) for number in range(2, 100)}
    assert len(wires) == 98
    assert all(len(wire) <= 15 for wire in wires)


def test_nodes_go_out_by_the_machine_and_pods_as_themselves():
    text = node_lan.rules_of(LAN, ("10.244.0.0/16", "fd00:10:244::/56"))
    assert "table inet smplan3 {" in text
    assert (
        'ip saddr 10.89.3.0/24 ip daddr != { 10.244.0.0/16 } oifname != "smplan3" masquerade'
        in text
    )
    assert "ip6 saddr fd89:5a4d:0:3::/64 ip6 daddr != { fd00:10:244::/56 }" in text


def test_a_record_that_cannot_be_read_is_none(tmp_path):
    file = tmp_path / "lan.json"
    assert node_lan.record(tmp_path) is None
    for text in ("", "[]", json.dumps({"bridge": "eth0", "subnet": "10.0.0.0/24"}), '{"bridge": 1}',
                 json.dumps({"bridge": "smplan0", "subnet": "nowhere"})):  # fmt: skip
        file.write_text(text)
        assert node_lan.record(tmp_path) is None
    file.write_text(json.dumps({"bridge": "smplan0", "subnet": "10.89.0.0/24"}))
    assert node_lan.record(tmp_path) == PodNetwork("smplan0", "10.89.0.0/24")
