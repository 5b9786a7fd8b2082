import argparse

import pytest

from sampan.cmd.flags import values


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("corp.example=10.0.0.53", (("10.0.0.53", 53),)),
        (".Corp.Example.=10.0.0.53:5353,10.0.0.54", (("10.0.0.53", 5353), ("10.0.0.54", 53))),
        ("corp.example=fd00::53", (("fd00::53", 53),)),
        ("corp.example=[fd00::53]:5353", (("fd00::53", 5353),)),
        ("corp.example=[fd00::53]", (("fd00::53", 53),)),
    ],
)
def test_a_stub_domain_has_name_servers_of_its_own(text, servers):
    assert values.stub_domain(text) == ("corp.example", servers)


@pytest.mark.parametrize("text", ["corp.example", "=10.0.0.53", "corp.example=", "a=host", "a=1:x"])
def test_a_stub_domain_without_servers_or_name_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        values.stub_domain(text)


def test_ranges_are_one_of_each_family_at_most():
    assert values.networks("10.0.0.0/16") == ("10.0.0.0/16",)
    assert values.networks("fd00:1::/56, 10.0.0.0/16") == ("fd00:1::/56", "10.0.0.0/16")
    with pytest.raises(argparse.ArgumentTypeError, match="must be of different IP family"):
        values.networks("10.0.0.0/16,10.1.0.0/16")
    with pytest.raises(argparse.ArgumentTypeError, match="more than two entries"):
        values.networks("10.0.0.0/16,fd00::/56,10.1.0.0/16")
    with pytest.raises(argparse.ArgumentTypeError, match=r"'10\.0\.0\.0/99' is no range"):
        values.networks("10.0.0.0/99")


@pytest.mark.parametrize("text", ["ipv5", "", "ipv4,ipv4", "ipv4,ipv6,ipv4"])
def test_families_are_ipv4_and_ipv6_each_once(text):
    assert values.families("IPv6,ipv4") == ("ipv6", "ipv4")
    with pytest.raises(argparse.ArgumentTypeError, match="is not ipv4, ipv6"):
        values.families(text)


def test_addresses_are_one_of_each_family():
    assert values.addresses("192.0.2.1,2001:DB8::1") == ("192.0.2.1", "2001:db8::1")
    with pytest.raises(argparse.ArgumentTypeError, match="two addresses of one family"):
        values.addresses("192.0.2.1,192.0.2.2")
    with pytest.raises(argparse.ArgumentTypeError, match="is no address"):
        values.addresses("one")


def test_where_to_listen_is_an_address_and_a_port():
    assert values.socket_address("127.0.0.1:10256") == ("127.0.0.1", 10256)
    assert values.socket_address("[::1]:0") == ("::1", 0)
    for text in ("10256", "host:1", "127.0.0.1", "127.0.0.1:x", "::1"):
        with pytest.raises(argparse.ArgumentTypeError):
            values.socket_address(text)
