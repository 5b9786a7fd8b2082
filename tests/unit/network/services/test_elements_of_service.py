from ipaddress import ip_network

import pytest

from sampan.network.nftables.desired_elements import DesiredElements
from sampan.network.nftables.elements import DROP, Verdict
from sampan.network.services.elements_of_service import (
    elements_of_service,
    frontend_of,
    served_by_udp,
)
from sampan.network.services.endpoints import NodeView
from tests.growth.line_counts import Counts, counted

HERE = NodeView("n1", pod_ranges=(ip_network("10.244.0.0/16"), ip_network("fd00:10:244::/56")))


def service(status=None, labels=None, **spec):
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    return {
        "metadata": {"name": "s", "namespace": "d", "labels": labels or {}},
        "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.5", "ports": ports, **spec},
        "status": status or {},
    }


def slices(*endpoints):
    """Each `address` or `address@node`."""
    entries = [
        {"addresses": [address], "nodeName": node or "n2"}
        for address, _, node in (each.partition("@") for each in endpoints)
    ]
    ports = [{"name": "http", "port": 8080, "protocol": "TCP"}]
    return [{"addressType": "IPv4", "ports": ports, "endpoints": entries}]


def elements(obj, *endpoints, family="ip"):
    return elements_of_service(obj, slices(*endpoints), family, HERE)


KEY = ("10.96.0.5", "TCP", 80)


def test_a_cluster_ip_picks_among_its_endpoints():
    assert elements(service(), "10.244.0.2", "10.244.0.3") == {
        ("service-ips", KEY): Verdict("cluster-2"),
        ("endpoints-0", KEY): ("10.244.0.2", 8080),
        ("endpoints-1", KEY): ("10.244.0.3", 8080),
    }


def test_without_endpoints_it_is_refused():
    assert elements(service()) == {("no-endpoint-ips", KEY): None}


def test_an_endpoint_of_this_node_may_ask_itself():
    found = elements(service(), "10.244.0.2@n1", "10.244.1.2")
    assert ("hairpin", ("10.244.0.2", "10.244.0.2")) in found
    assert ("hairpin", ("10.244.1.2", "10.244.1.2")) not in found


@pytest.mark.parametrize(
    "obj",
    [
        service(clusterIP="None"),
        service(type="ExternalName", clusterIP=""),
        service(labels={"service.kubernetes.io/service-proxy-name": "other"}),
    ],
)
def test_some_services_are_none_of_the_proxy_s_business(obj):
    assert elements(obj, "10.244.0.2") == {}


def test_the_other_family_has_elements_of_its_own():
    both = service(clusterIPs=["10.96.0.5", "fd00::5"])
    assert elements(both, family="ip6") == {("no-endpoint-ips", ("fd00::5", "TCP", 80)): None}


def test_internal_traffic_policy_local_knows_this_node_only():
    local = service(internalTrafficPolicy="Local")
    found = elements(local, "10.244.0.2@n1", "10.244.1.2")
    assert found["service-ips", KEY] == Verdict("cluster-1")
    assert found["endpoints-0", KEY] == ("10.244.0.2", 8080)
    # As upstream: dropped where others have one, refused where nobody has.
    assert elements(local, "10.244.1.2") == {("service-ips", KEY): DROP}
    assert elements(local) == {("no-endpoint-ips", KEY): None}


def node_port(**spec):
    ports = [{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080}]
    return service(type="NodePort", ports=ports, **spec)


def test_a_node_port_is_found_by_protocol_and_port_alone():
    found = elements(node_port(), "10.244.1.2")
    assert found["service-nodeports", ("TCP", 30080)] == Verdict("nodeport-1")
    assert found["nodeport-endpoints-0", ("TCP", 30080)] == ("10.244.1.2", 8080)
    assert elements(node_port())["no-endpoint-nodeports", ("TCP", 30080)] is None


def test_external_traffic_policy_local_drops_where_no_endpoint_is_here():
    local = node_port(externalTrafficPolicy="Local")
    found = elements(local, "10.244.1.2")
    assert found["local-nodeports", ("TCP", 30080)] == DROP
    assert found["service-nodeports", ("TCP", 30080)] == Verdict("nodeport-1")
    found = elements(local, "10.244.0.2@n1", "10.244.1.2")
    assert found["local-nodeports", ("TCP", 30080)] == Verdict("local-nodeport-1")
    assert found["service-nodeports", ("TCP", 30080)] == Verdict("nodeport-2")


def test_external_traffic_policy_local_refuses_where_no_endpoint_is_anywhere():
    port = ("TCP", 30080)
    found = elements(node_port(externalTrafficPolicy="Local"))
    assert found["no-endpoint-nodeports", port] is None
    assert ("local-nodeports", port) not in found


def test_who_serves_is_known_whoever_is_chosen():
    """[W1] A pod that ends goes on serving those that it has."""
    ports = [{"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053}]
    udp = service(type="NodePort", ports=ports, externalIPs=["192.0.2.9"])
    leaving = {"ready": False, "serving": True, "terminating": True}
    entries = [
        {"addresses": ["10.244.0.2"]},
        {"addresses": ["10.244.0.3"], "conditions": leaving},
        {"addresses": ["10.244.0.4"], "conditions": {"ready": False, "serving": False}},
    ]
    listed = [{"name": "dns", "port": 5353, "protocol": "UDP"}]
    pieces = [{"addressType": "IPv4", "ports": listed, "endpoints": entries}]
    who = frozenset({("10.244.0.2", 5353), ("10.244.0.3", 5353)})
    assert served_by_udp(udp, pieces, "ip", HERE) == {
        ("10.96.0.5", "UDP", 53): who,
        ("192.0.2.9", "UDP", 53): who,
        ("UDP", 30053): who,
    }
    assert served_by_udp(udp, [], "ip", HERE) == {}
    assert served_by_udp(service(), slices("10.244.0.2"), "ip", HERE) == {}
    headless = service(ports=ports, clusterIP="None")
    assert served_by_udp(headless, pieces, "ip", HERE) == {}


def test_external_and_load_balancer_addresses_are_the_service_s_too():
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}, {"ip": "192.0.2.8", "ipMode":
              "Proxy"}, {"hostname": "x"}]}}  # fmt: skip
    found = elements(service(status, externalIPs=["192.0.2.9"]), "10.244.1.2")
    external = {key[0] for name, key in found if name == "service-ips"}
    assert external == {"10.96.0.5", "192.0.2.7", "192.0.2.9"}
    assert found["service-ips", ("192.0.2.7", "TCP", 80)] == Verdict("external-1")


def test_source_ranges_hold_for_the_load_balancer_s_address():
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}
    ranges = ["10.0.0.0/25", "10.0.0.128/25", "2001:db8::/32"]
    found = elements(service(status, loadBalancerSourceRanges=ranges), "10.244.1.2")
    key = ("192.0.2.7", "TCP", 80)
    assert found["restricted-ips", key] is None
    allowed = [key for name, key in found if name == "allowed-sources"]
    assert allowed == [(*key, "10.0.0.0", *key, "10.0.0.255")]


def test_affinity_is_learned_by_a_chain_with_its_time():
    sticky = service(sessionAffinity="ClientIP")
    assert elements(sticky, "10.244.1.2")["affinity-ips", KEY] == Verdict("affinity-10800")
    config = {"clientIP": {"timeoutSeconds": 5}}
    short = service(sessionAffinity="ClientIP", sessionAffinityConfig=config)
    assert elements(short, "10.244.1.2")["affinity-ips", KEY] == Verdict("affinity-5")


def test_affinity_is_for_each_family():
    sticky = service(clusterIP="fd00::5", sessionAffinity="ClientIP")
    pieces = [{**piece, "addressType": "IPv6"} for piece in slices("fd00:244::2")]
    found = elements_of_service(sticky, pieces, "ip6", HERE)
    assert found["affinity-ips", ("fd00::5", "TCP", 80)] == Verdict("affinity-10800")


def test_one_service_answers_at_an_address_that_two_name():
    """Whole: no endpoint, affinity or source range of the other one is mixed in."""
    first = elements(service(externalIPs=["192.0.2.9"]), "10.244.1.2")
    second = elements(
        service(externalIPs=["192.0.2.9"], clusterIPs=["10.96.0.6"], sessionAffinity="ClientIP"),
        "10.244.1.3",
        "10.244.1.4",
    )
    none = elements(service(externalIPs=["192.0.2.9"]))
    desired = DesiredElements(group_of=frontend_of)
    desired.put("d/first", first)
    desired.put("d/second", second)
    shared = ("192.0.2.9", "TCP", 80)
    assert desired.elements_of("d/first") == first
    assert desired.elements_of("d/second")
    assert all(frontend_of(key) != shared for key in desired.elements_of("d/second"))
    desired.put("d/first", none)  # its endpoints are gone: refused, and not the other one's
    assert desired.elements_of("d/first") == none
    assert all(frontend_of(key) != shared for key in desired.elements_of("d/second"))
    desired.put("d/first", {})
    assert desired.elements_of("d/second") == second


@pytest.mark.parametrize("claimed", ["10.244.1.9", "10.244.255.254"])
def test_nobody_claims_a_pod_s_address(claimed):
    """Not as an external address, nor as a load balancer's: what is for the pod would go there."""
    for obj in (
        service(externalIPs=[claimed, "192.0.2.9"]),
        service({"loadBalancer": {"ingress": [{"ip": claimed}]}}, type="LoadBalancer"),
    ):
        found = elements(obj, "10.244.1.2")
        assert not [key for _, key in found if claimed in key]
        assert any("10.96.0.5" in key for _, key in found)


def test_another_port_costs_a_few_lines():
    def lines_of(count):
        ports = [{"name": f"p{n}", "port": n + 1, "protocol": "TCP"} for n in range(count)]
        entries = [{"addresses": ["10.244.0.2"]}]
        # As the controller writes them: a hundred ports each.
        pieces = [
            {"addressType": "IPv4", "ports": ports[at : at + 100], "endpoints": entries}
            for at in range(0, count, 100)
        ]
        counts: Counts = Counts()
        with counted(counts):
            found = elements_of_service(service(ports=ports), pieces, "ip", HERE)
        assert len(found) >= count
        return sum(counts.values())

    assert lines_of(400) - lines_of(200) <= 200 * 150
