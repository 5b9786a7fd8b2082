"""api/rules/service_ranges.py: which networks Services get addresses from."""

from sampan.api.rules.service_ranges import networks_to_give_from

OWN = ("10.96.0.0/16", "fd00::/112")


def cidr(*texts, ready=None, deleted=False):
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {
        "metadata": metadata,
        "spec": {"cidrs": list(texts)},
        "status": {"conditions": conditions},
    }


def given(*cidrs, family="IPv4"):
    return [str(network) for network in networks_to_give_from(OWN, cidrs, family)]


def test_before_there_is_an_object_the_server_s_own_ranges_count():
    assert given() == ["10.96.0.0/16"]
    assert given(family="IPv6") == ["fd00::/112"]


def test_the_server_s_own_range_comes_first():
    assert given(cidr("10.77.0.0/24"), cidr(*OWN, ready="True")) == ["10.96.0.0/16", "10.77.0.0/24"]
    assert given(cidr(*OWN), cidr("10.77.0.0/24"), family="IPv6") == ["fd00::/112"]


def test_nothing_is_given_from_a_range_that_goes_away_or_is_not_ready():
    going = [cidr("10.77.0.0/24", deleted=True), cidr("10.78.0.0/24", ready="False")]
    assert given(cidr(*OWN), *going) == ["10.96.0.0/16"]
    assert given(*going) == []
    assert given(*going, cidr("10.77.0.0/24")) == ["10.77.0.0/24"]  # another one has it, too
