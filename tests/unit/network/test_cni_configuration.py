import json

from sampan.network.bridge import PodNetwork
from sampan.network.cni_configuration import conflist

NETWORK = PodNetwork("sampan3", "10.244.3.0/24")


def test_pods_are_masqueraded_by_the_plugin_only_where_no_rule_of_ours_is():
    plain = conflist(NETWORK, "/data/ipam", masquerade=False)
    (bridge,) = plain["plugins"]
    assert "ipMasq" not in bridge
    assert bridge["bridge"] == "sampan3"
    assert bridge["ipam"]["dataDir"] == "/data/ipam"
    assert conflist(NETWORK, "/d", masquerade=True)["plugins"][0]["ipMasq"] is True
    assert json.dumps(plain)


def test_only_pods_with_host_ports_pay_for_the_plugin_that_maps_them():
    _, ports = conflist(NETWORK, "/d", masquerade=False, host_ports=True)["plugins"]
    assert ports["capabilities"] == {"portMappings": True}


def test_pods_with_limited_bandwidth_get_the_plugin_that_limits_it():
    """[N8]"""
    *_, last = conflist(NETWORK, "/d", masquerade=False, host_ports=True, bandwidth=True)["plugins"]
    assert last == {"type": "bandwidth", "capabilities": {"bandwidth": True}}


def test_the_reference_plugins_are_told_of_both_families():
    dual = PodNetwork("sampan3", "10.244.3.0/24", "fd00:10:244:3::/64")
    ipam = conflist(dual, "/d", masquerade=False)["plugins"][0]["ipam"]
    assert ipam["ranges"] == [[{"subnet": "10.244.3.0/24"}], [{"subnet": "fd00:10:244:3::/64"}]]
    assert ipam["routes"] == [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
