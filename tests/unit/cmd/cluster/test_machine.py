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
