import pytest

from sampan.cmd.cluster.ranges import chosen_ranges, complaint_about, dns_addresses
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import (
    CLUSTER_CIDR,
    CLUSTER_CIDR_IPV6,
    SERVICE_CIDR,
    SERVICE_CIDR_IPV6,
    Ranges,
)

DEFAULTS = Ranges((CLUSTER_CIDR,), (SERVICE_CIDR,), ("ipv4",))
BOTH = Ranges((CLUSTER_CIDR, CLUSTER_CIDR_IPV6), (SERVICE_CIDR, SERVICE_CIDR_IPV6))


def test_who_asks_for_nothing_has_the_defaults_or_what_was_chosen_before():
    assert chosen_ranges(Ranges(), {}) == DEFAULTS
    assert dns_addresses(DEFAULTS) == ("10.96.0.10",)
    before = {"cluster_cidr": "10.50.0.0/16", "service_cidr": "10.60.0.0/20", "port": 6443}
    assert chosen_ranges(Ranges(), before) == Ranges(
        ("10.50.0.0/16",), ("10.60.0.0/20",), ("ipv4",)
    )


@pytest.mark.parametrize("families", [("ipv4",), ("ipv6",), ("ipv4", "ipv6"), ("ipv6", "ipv4")])
def test_every_family_has_its_ranges_in_the_order_of_the_families(families):
    chosen = chosen_ranges(Ranges(families=families), {})
    assert tuple("ipv6" if ":" in each else "ipv4" for each in chosen.cluster) == families
    assert tuple("ipv6" if ":" in each else "ipv4" for each in chosen.service) == families
    assert len(dns_addresses(chosen)) == len(families)
    # The next start is told nothing, and finds the same.
    record = {"cluster_cidr": ",".join(chosen.cluster), "service_cidr": ",".join(chosen.service)}
    assert chosen_ranges(Ranges(), record) == chosen
    assert chosen_ranges(Ranges(families=families), record) == chosen


def test_ranges_say_which_families_there_are():
    chosen = chosen_ranges(Ranges(service=("fd00:9::/112", "10.9.0.0/16")), {})
    assert chosen.families == ("ipv6", "ipv4")
    assert chosen.cluster == (CLUSTER_CIDR_IPV6, CLUSTER_CIDR)
    turned = chosen_ranges(Ranges(BOTH.cluster, BOTH.service, ("ipv6", "ipv4")), {})
    assert turned.service == (SERVICE_CIDR_IPV6, SERVICE_CIDR)


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (Ranges(("fd00::/56",), (SERVICE_CIDR,)), "--cluster-cidr fd00::/56 does not fit"),
        (Ranges((CLUSTER_CIDR,), families=("ipv4", "ipv6")), "does not fit the families ipv4,ipv6"),
        (Ranges(BOTH.cluster, (SERVICE_CIDR,)), "does not fit the families ipv4"),
    ],
)
def test_ranges_must_fit_the_families(asked, what):
    with pytest.raises(CannotStart, match=what):
        chosen_ranges(asked, {})


def test_a_cluster_keeps_its_ranges():
    before = {"cluster_cidr": "10.50.0.0/16", "service_cidr": SERVICE_CIDR}
    assert chosen_ranges(Ranges(("10.50.0.0/16",)), before).cluster == ("10.50.0.0/16",)
    with pytest.raises(CannotStart, match=r"--cluster-cidr 10\.51\.0\.0/16: this cluster has"):
        chosen_ranges(Ranges(("10.51.0.0/16",)), before)
    with pytest.raises(CannotStart, match="--service-cidr"):
        chosen_ranges(Ranges(service=("10.61.0.0/16",)), before)
    with pytest.raises(CannotStart, match="does not fit the families"):
        chosen_ranges(Ranges(families=("ipv6",)), before)


@pytest.mark.parametrize(
    ("cluster", "service", "what"),
    [
        ("10.0.0.0/26", SERVICE_CIDR, "--cluster-cidr 10.0.0.0/26 is too small"),
        (CLUSTER_CIDR, "10.9.0.0/30", "--service-cidr 10.9.0.0/30 is too small"),
        (CLUSTER_CIDR, "10.0.0.0/8", "--service-cidr 10.0.0.0/8 is too large"),
        ("10.96.0.0/16", SERVICE_CIDR, "overlap"),
        ("fd00::/72", SERVICE_CIDR_IPV6, "each node gets a /64"),
        (CLUSTER_CIDR_IPV6, "fd00::/126", "a /124 is the smallest"),
        (CLUSTER_CIDR_IPV6, "fd00::/48", "a /64 is the largest"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(cluster, service, what):
    assert what in complaint_about(Ranges((cluster,), (service,)))
    with pytest.raises(CannotStart, match=what.partition(" ")[0]):
        chosen_ranges(Ranges((cluster,), (service,)), {})


def test_nothing_is_wrong_with_the_smallest_and_the_largest():
    assert complaint_about(Ranges(("10.0.1.0/24",), ("10.0.0.0/28",))) == ""
    assert complaint_about(Ranges(("10.244.0.0/16",), ("10.96.0.0/12",))) == ""
