import pytest

from sampan.cmd.cluster.addresses import advertise_address, server_names


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
    names = server_names("0.0.0.0", "one", "192.0.2.1", "10.5.0.0/16")
    assert {"10.5.0.1", "one", "192.0.2.1", "kubernetes.default.svc", "localhost"} <= set(names)
    assert "0.0.0.0" not in names
