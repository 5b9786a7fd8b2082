import pytest

from sampan.controllers.services.service_lb import plan, why_reserved, why_waiting


def node(name, address, ready="True", **labels):
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}],
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def service(kind="LoadBalancer", ingress=(), name="s", born=5, **spec):
    status = {"loadBalancer": {"ingress": list(ingress)} if ingress else {}}
    when = f"2026-01-01T00:00:0{born}Z"
    meta = {"name": name, "namespace": "d", "uid": "u", "creationTimestamp": when}
    return {"metadata": meta, "spec": {"type": kind, **spec}, "status": status}


NODES = [
    node("b", "192.0.2.2"),
    node("a", "192.0.2.1"),
    node("down", "192.0.2.3", ready="Unknown"),
    node("out", "192.0.2.4", **{"node.kubernetes.io/exclude-from-external-load-balancers": ""}),
    node("lo", "127.0.0.1"),
]


def addresses(obj, slices=(), rivals=()):
    actions = plan(obj, NODES, slices, rivals).actions
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


WEB = [{"port": 80}, {"port": 443, "protocol": "TCP"}]


def test_a_port_of_the_nodes_is_the_oldest_service_s():
    old = service(name="old", born=1, ports=WEB)
    assert addresses(old, rivals=[service(born=2, ports=WEB)]) == ["192.0.2.1", "192.0.2.2"]
    young = service(born=2, ports=[{"port": 443}])
    assert why_waiting(young, [old]) == "port 443/TCP of the nodes is Service d/old's"
    assert addresses(young, rivals=[old]) is None, "it has no address, and gets none"
    had = service(born=2, ports=WEB, ingress=[{"ip": "192.0.2.1"}])
    assert addresses(had, rivals=[old]) == []


@pytest.mark.parametrize(
    "rival",
    [
        service(born=1, name="r", ports=[{"port": 80, "protocol": "UDP"}]),
        service(born=1, name="r", ports=[{"port": 81}]),
        service("NodePort", born=1, name="r", ports=WEB),
        service(born=1, name="r", ports=WEB, loadBalancerClass="mine.example/x"),
        service(born=9, name="r", ports=WEB),
    ],
)
def test_who_wants_another_port_or_came_later_is_in_nobody_s_way(rival):
    assert why_waiting(service(ports=WEB), [rival]) == ""


def test_ports_of_the_nodes_themselves_are_not_for_load_balancers():
    kubelet = node("a", "192.0.2.1")
    kubelet["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10260}}

    def reserved(port, protocol="TCP"):
        return bool(why_reserved(service(ports=[{"port": port, "protocol": protocol}]), [kubelet]))

    tried = (22, 80, 443, 10250, 10260, 29999, 30000, 32767, 32768)
    assert [port for port in tried if reserved(port)] == [22, 10260, 30000, 32767]
    assert reserved(8472, "UDP")
    assert not reserved(22, "UDP")
