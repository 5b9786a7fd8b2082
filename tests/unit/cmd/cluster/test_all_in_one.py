import pytest

from sampan.cmd.cluster.all_in_one import advertise_address


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
