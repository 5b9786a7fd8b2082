import pytest

from sampan.core.ip_addresses import is_proxyable


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "192.168.1.2", "8.8.8.8", "fd00::1", "2001:db8::1", "::ffff:10.0.0.1"]
)
def test_ordinary_addresses_are_reached(address):
    assert is_proxyable(address)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.9.9.9", "0.0.0.0", "0.0.0.1", "169.254.169.254", "224.0.0.1",
     "255.255.255.255", "100.100.100.200", "168.63.129.16", "::1", "::", "fe80::1", "fe80::1%lo",
     "ff02::1", "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1",
     "::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "2002:7f00:1::1", "localhost", "",
     "127.1", "2130706433", "0177.0.0.1", "[::1]", " 10.0.0.1"],
)  # fmt: skip
def test_what_is_special_is_not_however_it_is_dressed(address):
    assert not is_proxyable(address)
