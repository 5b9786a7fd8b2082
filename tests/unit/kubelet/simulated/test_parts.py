import pytest

from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.kubelet.simulated.parts import Addresses, digits_of


def test_an_address_is_given_to_one_at_a_time_until_there_is_none():
    addresses = Addresses("10.1.2.0/29")
    given = [addresses.take() for _ in range(6)]
    assert len(set(given)) == 6
    assert all(one.startswith("10.1.2.") for one in given)
    with pytest.raises(RuntimeFailure, match="no free address"):
        addresses.take()
    addresses.give_back((given[2],))
    assert addresses.take() == given[2]


def test_ids_are_as_long_as_real_ones_and_the_same_for_the_same_seed():
    assert digits_of("a") == digits_of("a") != digits_of("b")
    assert len(digits_of("a")) == 64
