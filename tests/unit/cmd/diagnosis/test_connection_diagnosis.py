"""cmd/diagnosis/connection_diagnosis.py: a Service is as reachable as the pods behind it."""

import pytest

from sampan.cmd.diagnosis.connection_diagnosis import (
    Endpoint,
    Rules,
    addresses_of_node,
    endpoints_of,
    judged_lines,
    service_connection_lines,
    view_of,
    view_of_address,
)
from sampan.cmd.errors import CannotStart
from sampan.network.policies.compiled import compile_policy
from sampan.network.policies.elements_of_pod import name_server_view
from sampan.network.policies.judgement import Connection
from sampan.network.policies.ruleset import COVER_NODE


def pod(name, address, **labels):
    return {
        "metadata": {"name": name, "namespace": "ns", "labels": labels},
        "spec": {"nodeName": "n", "containers": []},
        "status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]},
    }


DENY = {
    "metadata": {"name": "deny", "namespace": "ns"},
    "spec": {"podSelector": {"matchLabels": {"guarded": "yes"}}, "policyTypes": ["Ingress"]},
}
ASKER = view_of(pod("asker", "10.0.0.1"))
OPEN, GUARDED = pod("open", "10.0.0.2"), pod("shut", "10.0.0.3", guarded="yes")
RULES = Rules([compile_policy(DENY)], {"ns": {}})


def connection(target):
    return Connection(ASKER, view_of(target), "TCP", 8080)


def lines(*targets):
    found = [(Endpoint(target["metadata"]["name"], 8080), connection(target)) for target in targets]
    return service_connection_lines("asker to web", found, RULES)


def test_a_service_is_refused_where_all_of_its_endpoints_are():
    assert lines(OPEN)[0] == "asker to web: allowed by NetworkPolicies."
    assert lines(GUARDED)[0] == "asker to web: refused by NetworkPolicies."
    some = lines(OPEN, GUARDED)
    assert some[0] == "asker to web: NetworkPolicies let it reach 1 of 2 endpoints."
    assert "  endpoint pod/shut, port 8080:" in some
    assert "    ingress: ns/deny select(s) the pod, and none lets it come in" in some


def test_a_pod_is_judged_by_itself():
    [first, *_] = judged_lines("asker to shut", connection(GUARDED), RULES)
    assert first == "asker to shut, TCP 8080: refused by NetworkPolicies."


SERVICE = {
    "metadata": {"name": "web"},
    "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
}
SLICE = {
    "ports": [{"name": "http", "port": 8080}],
    "endpoints": [
        {"targetRef": {"name": "a"}, "conditions": {"ready": True}},
        {"targetRef": {"name": "b"}, "conditions": {"ready": False}},
        {"conditions": {"ready": True}},
        {"addresses": ["192.0.2.7"]},
    ],
}


def test_endpoints_are_what_is_ready_at_its_own_port():
    pod_and_address = [Endpoint("a", 8080), Endpoint("", 8080, "192.0.2.7")]
    assert endpoints_of(SERVICE, [SLICE], 80, "TCP") == pod_and_address
    assert endpoints_of(SERVICE, [], 80, "TCP") == []
    with pytest.raises(CannotStart, match="web has no port 80/UDP: 80/TCP"):
        endpoints_of(SERVICE, [SLICE], 80, "UDP")


def test_a_pod_without_an_address_is_said_so():
    with pytest.raises(CannotStart, match="no address of its own"):
        view_of({"metadata": {"name": "x", "namespace": "ns"}, "spec": {}, "status": {}})


LOCKED = {
    "metadata": {"name": "locked", "namespace": "ns"},
    "spec": {
        "podSelector": {},
        "policyTypes": ["Egress"],
        "egress": [
            {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
            {"to": [{"namespaceSelector": {}}]},
        ],
    },
}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("192.0.2.7", "allowed by NetworkPolicies."),
        ("198.51.100.1", "allowed: no NetworkPolicy comes between a pod and its own node."),
        ("10.0.0.1", "allowed: no NetworkPolicy comes between a pod and its own node."),
        ("203.0.113.5", "refused by NetworkPolicies."),
    ],
)
def test_what_is_no_pod_is_judged_by_its_address(address, said):
    asker = pod("asker", "10.0.0.9")
    asker["status"]["hostIPs"] = [{"ip": "198.51.100.1"}]
    node = {"spec": {"podCIDRs": ["10.0.0.0/24"]}}
    rules = Rules([compile_policy(LOCKED)], {"ns": {}}, addresses_of_node(asker, node))
    asked = Connection(view_of(asker), view_of_address(address), "TCP", 80)
    [first, *more] = judged_lines("asker to there", asked, rules)
    assert first == f"asker to there, TCP 80: {said}"
    assert not any("ingress" in line for line in more)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (view_of_address("198.51.100.1"), "refused by NetworkPolicies."),
        (name_server_view(["10.0.0.1"]), "allowed by NetworkPolicies."),
    ],
)
def test_a_namespace_may_want_its_policies_to_cover_the_node(target, said):
    asker = pod("asker", "10.0.0.9")
    own = frozenset(["198.51.100.1", "10.0.0.1"])
    rules = Rules([compile_policy(LOCKED)], {"ns": {COVER_NODE: "true"}}, own)
    asked = Connection(view_of(asker), target, "TCP", 53)
    [first, *more] = judged_lines("asker to there", asked, rules)
    assert first == f"asker to there, TCP 53: {said}"
    assert not any("ingress" in line for line in more)
