from sampan.network import cni
from sampan.network.bridge import PodNetwork

NETWORK = PodNetwork("sampan3", "10.244.3.0/24")


def test_the_rules_of_a_network_are_in_a_table_of_its_own_and_know_its_pods():
    place = cni.proxy_place(NETWORK, ["10.96.0.0/12"])
    assert place.table == "sampan3-pods"
    assert place.pod_cidrs == place.cluster_cidrs == ("10.244.3.0/24",)
    assert place.service_cidrs == ("10.96.0.0/12",)


def test_rules_know_the_pods_of_both_families():
    dual = PodNetwork("sampan3", "10.244.3.0/24", "fd00:10:244:3::/64")
    place = cni.proxy_place(dual, ["10.96.0.0/12", "fd00:10:96::/112"], ["fd00:10:244::/56"])
    assert place.families == ("ip", "ip6")
    assert place.pod_cidrs == dual.subnets
    # The cluster's range holds one of them already.
    assert place.cluster_cidrs == ("fd00:10:244::/56", "10.244.3.0/24")
