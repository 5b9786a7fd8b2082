import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.network.pods.addresses import AddressesExhausted, gateway_of, next_address

SMALL = ipaddress.ip_network("10.244.3.0/28")
LARGE = ipaddress.ip_network("fd00:10:244:3::/64")


def test_the_first_two_and_the_last_are_nobody_s():
    given_out = []
    while True:
        try:
            given_out.append(next_address(SMALL, given_out, given_out[-1] if given_out else ""))
        except AddressesExhausted:
            break
    assert given_out == [f"10.244.3.{number}" for number in range(2, 15)]


def test_a_full_range_says_which():
    taken = {str(address) for address in SMALL}
    with pytest.raises(AddressesExhausted, match=r"range set: 10\.244\.3\.2-10\.244\.3\.14"):
        next_address(SMALL, taken)


def test_an_address_that_was_given_back_is_given_again_last():
    assert next_address(SMALL, {"10.244.3.2"}, "10.244.3.5") == "10.244.3.6"
    assert next_address(SMALL, set(), "10.244.3.14") == "10.244.3.2"


def test_the_last_one_of_another_range_is_no_guide():
    assert next_address(SMALL, set(), "10.9.0.7") == "10.244.3.2"


@given(st.sets(st.integers(2, 14)), st.integers(2, 14))
def test_what_is_given_is_free_and_usable(numbers, last):
    taken = {f"10.244.3.{number}" for number in numbers}
    if len(taken) == 13:
        return
    found = next_address(SMALL, taken, f"10.244.3.{last}")
    assert found not in taken
    assert ipaddress.ip_address(found) in list(SMALL)[2:-1]


def test_a_range_of_ipv6_is_not_looked_through():
    taken = {str(LARGE[number]) for number in range(2, 500)}
    assert next_address(LARGE, taken) == str(LARGE[500])
    assert next_address(LARGE, set(), str(LARGE[-1])) == str(LARGE[2])
    assert gateway_of(LARGE) == "fd00:10:244:3::1"
