"""cmd/cluster/machine.py: names that a node may have."""

import ipaddress

import pytest

from sampan.cmd.cluster import machine


@pytest.mark.parametrize(
    ("host", "node"),
    [("vm", "vm"), ("My_Laptop.local", "my-laptop.local"), ("-x-", "x"), ("", "node")],
)
def test_any_host_name_becomes_a_valid_node_name(host, node):
    assert machine.node_name(host) == node


def test_the_machine_has_an_address():
    assert ipaddress.ip_address(machine.primary_address())


def test_resolv_conf_is_read():
    text = "# mine\nsearch a.example b.example\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n"
    assert machine.name_servers(text) == (("192.0.2.1", "192.0.2.2"), ("a.example", "b.example"))
