import pytest

from sampan.network.services.endpoints import (
    Endpoint,
    NodeView,
    SlicesByPort,
    cluster_endpoints,
    local_endpoints,
)

HERE = NodeView("n1", "a")


def piece(*entries, kind="IPv4", **port):
    return {
        "addressType": kind,
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP", **port}],
        "endpoints": list(entries),
    }


def entry(address, **fields):
    return {"addresses": [address], **fields}


def named(endpoints):
    return [endpoint.address for endpoint in endpoints]


def test_conditions_that_nobody_set_mean_ready():
    [found] = SlicesByPort([piece(entry("10.0.0.1"))], "ip").endpoints("http", "TCP", HERE)
    assert found == Endpoint("10.0.0.1", 8080)


def test_only_the_port_s_own_name_protocol_and_family_count():
    slices = [
        piece(entry("10.0.0.1")),
        piece(entry("10.0.0.2"), name="other"),
        piece(entry("10.0.0.3"), protocol="UDP"),
        piece(entry("fd00::1"), kind="IPv6"),
        piece(entry("10.0.0.4"), port=None),
    ]
    assert named(SlicesByPort(slices, "ip").endpoints("http", "TCP", HERE)) == ["10.0.0.1"]
    assert named(SlicesByPort(slices, "ip6").endpoints("http", "TCP", HERE)) == ["fd00::1"]


def test_an_endpoint_in_two_slices_is_one_and_ready_if_either_says_so():
    gone = entry("10.0.0.1", conditions={"ready": False})
    slices = [piece(gone), piece(entry("10.0.0.1")), piece(gone)]
    [found] = SlicesByPort(slices, "ip").endpoints("http", "TCP", HERE)
    assert found.ready


def endpoint(name, **fields):
    return Endpoint(name, 80, **fields)


ENDING = {"ready": False, "serving": True, "terminating": True}


@pytest.mark.parametrize(
    ("endpoints", "cluster", "local"),
    [
        ([], [], []),
        ([endpoint("a"), endpoint("b", local=True)], ["a", "b"], ["b"]),
        ([endpoint("a"), endpoint("b", ready=False, local=True)], ["a"], []),
        ([endpoint("a"), endpoint("b", **ENDING)], ["a"], []),
        ([endpoint("a", **ENDING)], ["a"], []),
        ([endpoint("a"), endpoint("b", local=True, **ENDING)], ["a"], ["b"]),
        ([endpoint("a", ready=False, serving=False, terminating=True)], [], []),
        ([endpoint("a", zones=("a",)), endpoint("b", zones=("b",))], ["a"], []),
        ([endpoint("a", zones=("a",)), endpoint("b")], ["a", "b"], []),
        ([endpoint("a", zones=("c",)), endpoint("b", zones=("b",))], ["a", "b"], []),
        ([endpoint("a", nodes=("n1",), zones=("b",)), endpoint("b", nodes=("n2",))], ["a"], []),
        (
            [
                endpoint("a", nodes=("n2",), zones=("a",)),
                endpoint("b", nodes=("n3",), zones=("b",)),
            ],
            ["a"],
            [],
        ),
    ],
)
def test_which_endpoints_are_used(endpoints, cluster, local):
    assert named(cluster_endpoints(endpoints, HERE)) == cluster
    assert named(local_endpoints(endpoints)) == local
