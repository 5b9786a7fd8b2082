"""cmd/diagnosis/connection_diagnosis.py: a Service is as reachable as the pods behind it."""

import pytest

from sampan.cmd.diagnosis.connection_diagnosis import (
    Endpoint,
    Rules,
    endpoints_of,
    judged_lines,
    service_connection_lines,
    view_of,
)
from sampan.cmd.errors import CannotStart
from sampan.network.policies.compiled import compile_policy
from sampan.network.policies.judgement import Connection


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
    ],
}


def test_endpoints_are_the_ready_pods_at_their_own_port():
    assert endpoints_of(SERVICE, [SLICE], 80, "TCP") == [Endpoint("a", 8080)]
    assert endpoints_of(SERVICE, [], 80, "TCP") == []
    with pytest.raises(CannotStart, match="web has no port 80/UDP: 80/TCP"):
        endpoints_of(SERVICE, [SLICE], 80, "UDP")


def test_a_pod_without_an_address_is_said_so():
    with pytest.raises(CannotStart, match="no address of its own"):
        view_of({"metadata": {"name": "x", "namespace": "ns"}, "spec": {}, "status": {}})
