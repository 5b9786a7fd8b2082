"""IP addresses and networks in API fields."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api import features
from sampan.api.features import Release
from sampan.api.validation.network.addresses import (
    address_of,
    family_of,
    network_of,
    validate_address,
    validate_canonical_address,
    validate_network,
)


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


def complaints(validated, text, *kept):
    errors = []
    validated(text, "p", errors, *kept)
    return [error.message.partition('": ')[2] for error in errors]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.0.0.1", []),
        ("FD00:0::1", []),  # old fields take any spelling that means one thing
        ("010.0.0.1", ["must not have leading 0s"]),
        ("::ffff:1.2.3.4", ["must not be an IPv4-mapped IPv6 address"]),
    ],
)
def test_from_v1_36_on_addresses_mean_the_same_to_every_program(text, why):
    """[V1] StrictIPCIDRValidation"""
    with features.used(Release("1.35")):
        assert complaints(validate_address, text) == []
    with features.used(Release("1.36")):
        assert complaints(validate_address, text) == why
        assert complaints(validate_address, text, [text]) == [], "it was there before"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.0.0.0/8", []),
        ("FD00::/64", []),
        ("10.0.0.0/08", ["must not have leading 0s in IP or prefix length"]),
        ("010.0.0.0/8", ["must not have leading 0s in IP or prefix length"]),
        ("::ffff:10.0.0.0/120", ["must not have an IPv4-mapped IPv6 address"]),
        ("10.0.0.1/8", ["must not have bits set beyond the prefix length"]),
    ],
)
def test_from_v1_36_on_networks_mean_the_same_to_every_program(text, why):
    """[V1] StrictIPCIDRValidation"""
    with features.used(Release("1.35")):
        assert complaints(validate_network, text) == []
    with features.used(Release("1.36")):
        assert complaints(validate_network, text) == why
        assert complaints(validate_network, text, [text]) == [], "it was there before"


def test_addresses_of_new_fields_have_one_spelling():
    assert complaints(validate_canonical_address, "fd00::1") == []
    assert complaints(validate_canonical_address, "FD00::1") == [
        'must be in canonical form ("fd00::1")'
    ]
    assert complaints(validate_canonical_address, "x") == [
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    ]


@given(st.text(max_size=20))
def test_any_text_gets_an_answer(text):
    address_of(text)
    network_of(text)


@given(st.ip_addresses().map(str) | st.from_regex(r"[0-9]{1,4}(\.[0-9]{0,3}){2,4}", fullmatch=True))
def test_the_family_of_an_address_is_found_as_by_reading_it(text):
    found = address_of(text)
    assert family_of(text) == (0 if found is None else found.version)
