import ipaddress

from sampan.controllers.actions import NOTHING, Record
from sampan.controllers.nodes.node_ipam import plan

RANGES = [ipaddress.ip_network("10.0.0.0/23"), ipaddress.ip_network("fd00::/56")]


def node(name, *ranges):
    spec = {"podCIDR": ranges[0], "podCIDRs": list(ranges)} if ranges else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}


def test_each_node_gets_the_first_free_range_of_each_family():
    [patch] = plan(node("a"), [], RANGES).actions
    assert patch.patch["spec"] == {
        "podCIDR": "10.0.0.0/24",
        "podCIDRs": ["10.0.0.0/24", "fd00::/64"],
    }
    other = node("b", "10.0.0.0/24", "fd00::/64")
    [patch] = plan(node("a"), [other], RANGES).actions
    assert patch.patch["spec"]["podCIDRs"] == ["10.0.1.0/24", "fd00:0:0:1::/64"]


def test_a_range_is_given_once():
    assert plan(node("a", "10.9.0.0/24"), [], RANGES) == NOTHING


def test_a_full_cluster_says_so():
    full = [node("b", "10.0.0.0/24"), node("c", "10.0.1.0/24")]
    [event] = plan(node("a"), full, RANGES[:1]).actions
    assert isinstance(event, Record)
    assert event.reason == "CIDRNotAvailable"
