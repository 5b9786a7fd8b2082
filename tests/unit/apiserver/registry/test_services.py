import random

import pytest

from sampan.api.errors import Invalid
from sampan.apiserver.registry.services import Allocator, prepare_update


def service(name, **spec):
    return {"metadata": {"name": name, "namespace": "d"}, "spec": spec}


def allocator(*services, cidr="10.0.0.0/29", first=30000, last=30003):
    return Allocator(cidr, first, last, lambda: list(services), random.Random(1))


def given(existing, new, **settings):
    with allocator(*existing, **settings).allocated(new):
        return new["spec"]


def test_addresses_are_given_until_there_are_none():
    services = []
    for number in range(5):  # eight, less network, kubernetes and broadcast
        new = service(f"s{number}", type="ClusterIP")
        given(services, new)
        services.append(new)
    ips = {one["spec"]["clusterIP"] for one in services}
    assert ips == {f"10.0.0.{n}" for n in (2, 3, 4, 5, 6)}
    with pytest.raises(Invalid, match="range is full"):
        given(services, service("more", type="ClusterIP"))


def test_what_is_being_given_is_not_given_twice():
    one = allocator(cidr="10.0.0.0/29")
    first, second = service("a", type="ClusterIP"), service("b", type="ClusterIP")
    with one.allocated(first), one.allocated(second):
        assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
    same = service("c", type="ClusterIP", clusterIP=first["spec"]["clusterIP"])
    with one.allocated(same):
        assert same["spec"]["clusterIPs"] == [first["spec"]["clusterIP"]]


def test_wishes_are_checked():
    taken = service("a", clusterIP="10.0.0.3", ports=[{"nodePort": 30001}])
    assert given([taken], service("b", clusterIP="10.0.0.4"))["clusterIP"] == "10.0.0.4"
    with pytest.raises(Invalid, match="provided IP is already allocated"):
        given([taken], service("b", clusterIP="10.0.0.3"))
    with pytest.raises(Invalid, match="not in the valid range"):
        given([taken], service("b", clusterIP="10.9.0.3"))
    assert given([taken], service("b", clusterIP="None"))["clusterIPs"] == ["None"]
    ports = [{"port": 80, "nodePort": 30001}]
    with pytest.raises(Invalid, match="provided port is already allocated"):
        given([taken], service("b", type="NodePort", ports=ports))
    ports = [{"port": 80, "nodePort": 80}]
    with pytest.raises(Invalid, match="30000-30003"):
        given([taken], service("b", type="NodePort", ports=ports))


def test_node_ports_are_distinct_and_bounded():
    ports = [{"port": n} for n in range(4)]
    spec = given([], service("a", type="NodePort", ports=ports))
    assert {one["nodePort"] for one in spec["ports"]} == {30000, 30001, 30002, 30003}
    with pytest.raises(Invalid, match="range is full"):
        given([service("a", **spec)], service("b", type="LoadBalancer", ports=[{"port": 1}]))


def test_external_names_have_no_address():
    assert "clusterIP" not in given([], service("a", type="ExternalName", externalName="x.y"))


def test_an_update_keeps_what_it_does_not_name():
    old = service(
        "a", type="NodePort", clusterIP="10.0.0.2", clusterIPs=["10.0.0.2"],
        ports=[{"port": 80, "protocol": "TCP", "nodePort": 30002}],
    )  # fmt: skip
    new = service("a", type="NodePort", ports=[{"port": 80, "protocol": "TCP"}])
    prepare_update(new, old)
    assert new["spec"]["clusterIP"] == "10.0.0.2"
    assert new["spec"]["ports"][0]["nodePort"] == 30002
