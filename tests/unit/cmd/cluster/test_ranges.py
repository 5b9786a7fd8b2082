import pytest

from sampan.cmd.cluster.ranges import chosen_ranges, complaint_about, dns_address
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import CLUSTER_CIDR, SERVICE_CIDR, Ranges

DEFAULTS = Ranges(CLUSTER_CIDR, SERVICE_CIDR)


def test_who_asks_for_nothing_has_the_defaults_or_what_was_chosen_before():
    assert chosen_ranges(Ranges(), {}) == DEFAULTS
    assert dns_address(DEFAULTS) == "10.96.0.10"
    before = {"cluster_cidr": "10.50.0.0/16", "service_cidr": "10.60.0.0/20", "port": 6443}
    assert chosen_ranges(Ranges(), before) == Ranges("10.50.0.0/16", "10.60.0.0/20")


def test_a_cluster_keeps_its_ranges():
    before = {"cluster_cidr": "10.50.0.0/16", "service_cidr": SERVICE_CIDR}
    assert chosen_ranges(Ranges("10.50.0.0/16"), before).cluster == "10.50.0.0/16"
    with pytest.raises(CannotStart, match=r"--cluster-cidr 10\.51\.0\.0/16: this cluster has"):
        chosen_ranges(Ranges("10.51.0.0/16"), before)
    with pytest.raises(CannotStart, match="--service-cidr"):
        chosen_ranges(Ranges(service="10.61.0.0/16"), before)


@pytest.mark.parametrize(
    ("cluster", "service", "what"),
    [
        ("10.0.0.0/26", SERVICE_CIDR, "--cluster-cidr 10.0.0.0/26 is too small"),
        (CLUSTER_CIDR, "10.9.0.0/30", "--service-cidr 10.9.0.0/30 is too small"),
        (CLUSTER_CIDR, "10.0.0.0/8", "--service-cidr 10.0.0.0/8 is too large"),
        ("10.96.0.0/16", SERVICE_CIDR, "overlap"),
        ("fd00::/56", SERVICE_CIDR, "IPv6 is not there yet"),
        (CLUSTER_CIDR, "fd00::/112", "IPv6 is not there yet"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(cluster, service, what):
    assert what in complaint_about(Ranges(cluster, service))
    with pytest.raises(CannotStart, match=what.partition(" ")[0]):
        chosen_ranges(Ranges(cluster, service), {})


def test_nothing_is_wrong_with_the_smallest_and_the_largest():
    assert complaint_about(Ranges("10.0.1.0/24", "10.0.0.0/28")) == ""
    assert complaint_about(Ranges("10.244.0.0/16", "10.96.0.0/12")) == ""
