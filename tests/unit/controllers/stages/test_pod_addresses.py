import pytest

from sampan.controllers.stages.pod_addresses import PodAddresses


def pod(uid, *addresses):
    return {"metadata": {"uid": uid}, "status": {"podIPs": [{"ip": each} for each in addresses]}}


def test_a_pod_keeps_its_address_and_no_other_has_it():
    addresses = PodAddresses()
    given = {uid: addresses.of(uid, ["10.1.0.0/24"], ()) for uid in ("a", "b", "c")}
    assert given == {"a": ["10.1.0.2"], "b": ["10.1.0.3"], "c": ["10.1.0.4"]}
    assert addresses.of("b", ["10.1.0.0/24"], ()) == ["10.1.0.3"]
    addresses.release("b")
    assert addresses.of("d", ["10.1.0.0/24"], ()) == ["10.1.0.3"]
    assert addresses.of("e", (), ()) == ["10.0.0.2"]


def test_addresses_from_before_the_start_are_taken():
    addresses = PodAddresses()
    there = [pod("a", "10.1.0.3", "fd00::9"), pod("b", "172.16.0.1")]
    found = [addresses.of(uid, ["10.1.0.0/24"], there)[0] for uid in ("a", "x", "y")]
    assert found == ["10.1.0.3", "10.1.0.2", "10.1.0.4"]


@pytest.mark.parametrize("ranges", [["10.1.0.0/29"], ["fd00::/125"]])
def test_a_range_ends(ranges):
    addresses = PodAddresses()
    given = [addresses.of(str(number), ranges, ()) for number in range(7)]
    assert len({each[0] for each in given if each}) == 5
    assert given[5:] == [[], []]


def test_a_pod_has_one_of_each_family():
    assert PodAddresses().of("a", ["10.1.0.0/24", "fd00:10::/64"], ()) == ["10.1.0.2", "fd00:10::2"]
