import os
import socket

import pytest

from sampan.network.nftables import own_port

NETFILTER = 12


@pytest.fixture
def netlink():
    opened = [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER) for _ in range(3)]
    yield opened
    for each in opened:
        each.close()


def test_every_socket_has_a_port_of_its_own_that_is_recognised(netlink):
    for each in netlink:
        own_port.bind(each)
    ports = [each.getsockname()[0] for each in netlink]
    assert len(set(ports)) == len(ports)
    assert all(own_port.is_own(port) for port in ports)


@pytest.mark.parametrize(
    "port",
    [0, os.getpid(), os.getpid() + 1, 1 << 22 | (os.getpid() + 1)],
    ids=["none", "first", "next", "of another process"],
)
def test_ports_that_the_kernel_chooses_are_nobodys_of_us(port):
    """It takes the process' number, as for the children that run nft."""
    assert not own_port.is_own(port)
