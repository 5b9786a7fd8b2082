import pytest

from sampan.controllers.services.service_lb import plan


def node(name, address, ready="True", **labels):
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}],
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def service(kind="LoadBalancer", ingress=(), **spec):
    status = {"loadBalancer": {"ingress": list(ingress)} if ingress else {}}
    meta = {"name": "s", "namespace": "d", "uid": "u"}
    return {"metadata": meta, "spec": {"type": kind, **spec}, "status": status}


NODES = [
    node("b", "192.0.2.2"),
    node("a", "192.0.2.1"),
    node("down", "192.0.2.3", ready="Unknown"),
    node("out", "192.0.2.4", **{"node.kubernetes.io/exclude-from-external-load-balancers": ""}),
    node("lo", "127.0.0.1"),
]


def addresses(obj, slices=()):
    actions = plan(obj, NODES, slices).actions
    if not actions:
        return None
    balancer = actions[0].patch["status"]["loadBalancer"]
    return [each["ip"] for each in balancer.get("ingress") or ()]


def test_a_load_balancer_has_the_addresses_of_the_nodes_that_can_serve():
    assert addresses(service()) == ["192.0.2.1", "192.0.2.2"]


def test_what_is_right_already_is_not_written():
    present = [{"ip": ip, "ipMode": "VIP"} for ip in ("192.0.2.1", "192.0.2.2")]
    assert addresses(service(ingress=present)) is None


def test_policy_local_names_only_nodes_with_endpoints():
    slices = [{"endpoints": [{"nodeName": "b"}, {"nodeName": "a", "conditions": {"ready": False}}]}]
    assert addresses(service(externalTrafficPolicy="Local"), slices) == ["192.0.2.2"]


@pytest.mark.parametrize(
    "obj", [service(loadBalancerClass="mine.example/x"), service("ClusterIP"), service("NodePort")]
)
def test_others_are_left_alone(obj):
    assert addresses(obj) is None


def test_a_service_that_is_no_load_balancer_any_more_loses_its_addresses():
    assert addresses(service("ClusterIP", ingress=[{"ip": "192.0.2.1"}])) == []
