import random

import pytest

from sampan.api.errors import ServiceUnavailable
from sampan.apiserver.proxy.service_proxy import service_origin

SERVICE = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 9000}]},
}
PODS = {"a": {"status": {"podIPs": [{"ip": "10.0.0.1"}]}}, "b": {"status": {}}}

OTHERS = {"secret": {"status": {"podIPs": [{"ip": "10.0.0.9"}]}}}


def endpoint(address, pod="a", **more):
    return {"addresses": [address], "targetRef": {"kind": "Pod", "name": pod}, **more}


def part(*endpoints, port=8080, name="http"):
    meta = {"name": "web-1", "namespace": "default"}
    return {"metadata": meta, "endpoints": endpoints, "ports": [{"name": name, "port": port}]}


def find_pod(namespace, name):
    return PODS.get(name) if namespace == "default" else OTHERS.get(name)


def url(slices, scheme="", port="80"):
    return str(service_origin(SERVICE, slices, find_pod, scheme, port, random.Random(1)))


def test_a_port_is_meant_by_number_or_by_name():
    slices = [part(endpoint("10.0.0.1")), part(endpoint("10.0.0.1"), port=1, name="admin")]
    assert url(slices) == "http://10.0.0.1:8080"
    assert url(slices, "https", "admin") == "https://10.0.0.1:1"


@pytest.mark.parametrize(
    "slices",
    [
        [],
        [part(endpoint("10.0.0.1", conditions={"ready": False}))],
        [part(endpoint("10.0.0.1"), name="other")],
        [part(endpoint("169.254.169.254"))],
        [part(endpoint("10.0.0.1", pod="b"))],
        [part(endpoint("10.0.0.1", pod="gone"))],
        [part({"addresses": ["10.0.0.1"]})],
        [
            part(
                {
                    "addresses": ["10.0.0.9"],
                    "targetRef": {"kind": "Pod", "namespace": "other", "name": "secret"},
                }
            )
        ],
    ],
)
def test_only_ready_pods_that_own_the_address_are_reached(slices):
    with pytest.raises(ServiceUnavailable, match='no endpoints available for service "web"'):
        url(slices)


def test_a_number_that_is_no_port_of_the_service():
    with pytest.raises(ServiceUnavailable, match='no service port 81 found for service "web"'):
        url([part(endpoint("10.0.0.1"))], port="81")
