"""IP addresses and networks in API fields."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.validation.network.addresses import address_of, family_of, network_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("010.000.0.1", "10.0.0.1"),
        ("fd00::1", "fd00::1"),
        ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
    ],
)
def test_addresses_are_read_and_leading_zeros_forgiven(text, expected):
    assert address_of(text) == ip_address(expected)  # newer Pythons print the last one otherwise


@pytest.mark.parametrize("text", ["", "x", "10.0.0", "10.0.0.256", "fe80::1%eth0", "10.0.0.1/8"])
def test_what_is_no_address_is_none(text):
    assert address_of(text) is None


def test_networks_may_have_host_bits():
    assert str(network_of("10.0.0.1/8")) == "10.0.0.0/8"
    assert network_of("10.0.0.0") is None
    assert network_of("10.0.0.0/33") is None
    assert network_of("10.0.0.0/255.0.0.0") is None


@given(st.text(max_size=20))
def test_any_text_gets_an_answer(text):
    address_of(text)
    network_of(text)


@given(st.ip_addresses().map(str) | st.from_regex(r"[0-9]{1,4}(\.[0-9]{0,3}){2,4}", fullmatch=True))
def test_the_family_of_an_address_is_found_as_by_reading_it(text):
    found = address_of(text)
    assert family_of(text) == (0 if found is None else found.version)
