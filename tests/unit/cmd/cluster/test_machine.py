"""cmd/cluster/machine.py: names that a node may have, and what root may do."""

import ipaddress

import pytest

from sampan.cmd.cluster import machine
from sampan.cmd.errors import CannotStart


@pytest.mark.parametrize(
    ("host", "node"),
    [("vm", "vm"), ("My_Laptop.local", "my-laptop.local"), ("-x-", "x"), ("", "node")],
)
def test_any_host_name_becomes_a_valid_node_name(host, node):
    assert machine.node_name(host) == node


def test_the_machine_has_an_address():
    assert ipaddress.ip_address(machine.primary_address())


@pytest.mark.parametrize(
    ("effective", "lacking"),
    [
        ("000001ffffffffff", []),
        ("00000000a80425fb", ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]),  # root of an ordinary container
        ("00000000a80435fb", ["CAP_SYS_ADMIN"]),
    ],
)
def test_root_of_an_ordinary_container_may_not_do_what_a_node_needs(effective, lacking):
    status = f"Name:\tbash\nCapPrm:\t000001ffffffffff\nCapEff:\t{effective}\nCapBnd:\t0\n"
    assert machine.lacking_capabilities(status) == lacking


@pytest.mark.parametrize(
    ("release", "is_enough"),
    [("3.10.0-1160.el7.x86_64", False), ("4.18.0", False), ("4.19.0", True), ("6.1.0-18", True)],
)
def test_a_kernel_is_new_enough_or_up_says_so(release, is_enough):
    assert machine.is_new_enough(release) is is_enough


def test_a_node_has_an_address_of_each_family():
    both = machine.node_addresses((), ("ipv6", "ipv4"))
    assert [ipaddress.ip_address(each).version for each in both] == [6, 4]
    asked = ("192.0.2.1", "2001:db8::1")
    assert machine.node_addresses(asked, ("ipv6", "ipv4")) == ("2001:db8::1", "192.0.2.1")
    assert machine.node_addresses(asked[:1], ("ipv4",)) == asked[:1]


def test_an_address_of_no_family_of_the_cluster_is_refused():
    with pytest.raises(CannotStart, match=r"--node-ip 2001:db8::1 does not fit .* ipv4"):
        machine.node_addresses(("2001:db8::1",), ("ipv4",))
