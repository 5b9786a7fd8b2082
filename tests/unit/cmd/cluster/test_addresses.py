import pytest

from sampan.cmd.cluster.addresses import advertise_address, opening, server_names, url_of
from sampan.cmd.errors import CannotStart


@pytest.mark.parametrize(
    ("bind", "gateway", "advertised"),
    [
        ("127.0.0.1", "10.244.0.1", "10.244.0.1"),
        ("::1", "10.244.0.1", "10.244.0.1"),
        ("localhost", "10.244.0.1", "10.244.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("0.0.0.0", "10.244.0.1", "192.0.2.1"),
        ("192.0.2.7", "10.244.0.1", "192.0.2.7"),
    ],
)
def test_pods_are_told_an_address_that_they_can_reach(bind, gateway, advertised):
    assert advertise_address(bind, "192.0.2.1", gateway) == advertised


def test_the_certificate_names_the_first_address_of_the_services():
    names = server_names("0.0.0.0", "one", ("192.0.2.1",), ("10.5.0.0/16", "fd00:5::/112"))
    assert {
        "10.5.0.1",
        "fd00:5::1",
        "one",
        "192.0.2.1",
        "kubernetes.default.svc",
        "localhost",
    } <= set(names)
    assert "0.0.0.0" not in names


def test_the_service_kubernetes_has_an_address_of_the_cluster_s_main_family():
    assert advertise_address("127.0.0.1", "2001:db8::1", "fd00:10:244::1") == "fd00:10:244::1"
    assert advertise_address("0.0.0.0", "2001:db8::1", "fd00:10:244::1") == "2001:db8::1"
    with pytest.raises(CannotStart, match=r"192\.0\.2\.7 is no IPv6 address"):
        advertise_address("192.0.2.7", "2001:db8::1", "fd00:10:244::1")


def test_an_address_of_ipv6_has_brackets_in_a_url():
    assert url_of("::1", 6443) == "https://[::1]:6443"
    assert url_of("192.0.2.1", 6443) == "https://192.0.2.1:6443"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", "127.0.0.2"])
def test_a_server_for_this_machine_only_opens_nothing(address):
    assert opening(address, 6443) == ""


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("0.0.0.0", "every address"),
        ("::", "every address"),
        ("192.0.2.7", "at 192.0.2.7, port 1"),
        ("this-machine", "at this-machine, port 1"),
    ],
)
def test_what_a_server_opens_to_other_machines_is_said(address, what):
    assert what in opening(address, 1)
