import pytest
from hypothesis import given, settings

from sampan.scheduler.filters.node_ports import NODE_PORTS
from sampan.scheduler.model.pod_info import pod_info_of
from tests.support.generators.random_clusters import clusters, pods, snapshot_of

ANY = "0.0.0.0"


def host_ports(pod):
    return [
        (port.get("protocol", "TCP"), port["hostPort"], port.get("hostIP") or ANY)
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
        if "hostPort" in port
    ]


def clash(one, other):
    same_address = one[2] == other[2] or ANY in (one[2], other[2])
    return one[:2] == other[:2] and same_address


@pytest.mark.slow
@settings(deadline=None)
@given(clusters(), pods())
def test_a_node_is_refused_exactly_where_a_pod_on_it_holds_the_port(cluster, pod):
    there, placed = cluster
    mask = NODE_PORTS.mask(pod_info_of(pod).shape, snapshot_of(cluster))
    expected = [
        not any(
            clash(wanted, held)
            for wanted in host_ports(pod)
            for other in placed[node["metadata"]["name"]]
            for held in host_ports(other)
        )
        for node in there
    ]
    assert expected == ([True] * len(expected) if mask is None else mask.tolist())
