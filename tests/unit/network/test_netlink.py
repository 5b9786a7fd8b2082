import os
import platform

import pytest

from sampan.network.netlink import alias_of, gateway_routes_ipv6, parse_routes_ipv6, set_alias

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="netlink is Linux's own")


def test_an_interface_that_is_not_there_has_no_alias():
    assert alias_of("nobody0") == ""
    assert alias_of("a" * 40) == ""


def test_an_alias_cannot_be_given_to_what_is_not_there():
    with pytest.raises(OSError, match=r"No such device|not permitted"):
        set_alias("nobody0", "x")


@pytest.mark.containerd
def test_an_alias_is_read_as_it_was_written():
    """Needs root; the loopback interface of a namespace of its own is used."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os_unshare_network()
            set_alias("lo", "sampan test")
            code = 0 if alias_of("lo") == "sampan test" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def os_unshare_network():
    import ctypes

    clone_newnet = 0x40000000
    assert ctypes.CDLL(None).unshare(clone_newnet) == 0


def test_the_kernel_s_ipv6_routes_are_read():
    """Of networks only: not of the machine's own addresses, of one wire, or for many."""
    table = (
        "fd001000000000000000000000000000 40 00000000000000000000000000000000 00 "
        "00000000000000000000000000000000 00000100 00000001 00000000 00000001 br0\n"
        "20010db8000000000000000000000000 20 00000000000000000000000000000000 00 "
        "fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n"
        "fe800000000000000000000000000000 40 00000000000000000000000000000000 00 "
        "00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0\n"
        "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
        "fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n"
        "fd001000000000000000000000000001 80 00000000000000000000000000000000 00 "
        "00000000000000000000000000000000 00000000 00000001 00000000 80200001 lo\n"
        "ff000000000000000000000000000000 08 00000000000000000000000000000000 00 "
        "00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0\n"
    )
    direct, far = ("fd00:1000::/64", "br0"), ("2001:db8::/32", "eth0")
    assert parse_routes_ipv6(table) == [direct, far, ("::/0", "eth0")]
    assert gateway_routes_ipv6(table) == {("2001:db8::/32", "fe80::1"), ("::/0", "fe80::1")}
    assert parse_routes_ipv6(table, gateways=False) == [direct]
