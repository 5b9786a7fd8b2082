import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.rules.tolerations import keeps_away
from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.pod_terms import demands_of
from sampan.scheduler.queue.requeue import could_take
from sampan.scheduler.scores.pod_topology_spread import PREFERRED_SPREAD
from tests.support.generators.random_clusters import crowds, neighbours, snapshot_of

HOSTNAME = "kubernetes.io/hostname"


def labels(obj):
    return obj["metadata"]["labels"]


def matching(constraint, on_node):
    return sum(
        constraint.selector.matches(one["metadata"]["namespace"], {}, labels(one))
        and "deletionTimestamp" not in one["metadata"]
        for one in on_node
    )


def counted(constraint, pod, node):
    """By the filters of one node, resources and other taints aside."""
    shape, row = pod_info_of(pod).shape, node_info_of(node)
    bare = {"unschedulable": False, "taints": frozenset(), "allowed_pods": 1}

    no_requests = replace(shape, usage=replace(shape.usage, requests=()))
    if constraint.honor_affinity and not could_take(replace(row, **bare), no_requests):
        return False
    return not (constraint.honor_taints and keeps_away(shape.tolerations, row.taints))


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(crowds(), neighbours(asks=("level",)), st.data())
def test_points_are_those_of_the_slow_way(cluster, pod, data):
    there, placed = cluster
    nodes = snapshot_of(cluster)
    feasible = data.draw(st.lists(st.booleans(), min_size=len(nodes), max_size=len(nodes)))
    found = PREFERRED_SPREAD.points(pod_info_of(pod).shape, nodes, np.array(feasible, bool))
    soft = [one for one in demands_of(pod).spread if not one.hard]
    labelled = [all(one.topology_key in labels(node) for one in soft) for node in there]
    scored = [node for node, may, has in zip(there, feasible, labelled, strict=True) if may and has]
    if not soft or not scored:
        assert found is None
        return
    raw = {}
    for node in scored:
        total = 0.0
        for one in soft:
            if one.topology_key == HOSTNAME:
                size, count = len(scored), matching(one, placed[node["metadata"]["name"]])
            else:
                size = len({labels(other)[one.topology_key] for other in scored})
                count = sum(
                    matching(one, placed[other["metadata"]["name"]])
                    for other, has in zip(there, labelled, strict=True)
                    if has
                    and counted(one, pod, other)
                    and labels(other)[one.topology_key] == labels(node)[one.topology_key]
                )
            total += count * math.log(size + 2) + one.max_skew - 1
        raw[node["metadata"]["name"]] = math.floor(total + 0.5)
    least, most = min(raw.values()), max(raw.values())
    for at, node in enumerate(there):
        name = node["metadata"]["name"]
        if name in raw:
            expected = 100 * (most + least - raw[name]) // most if most else 100
            assert found[at] == expected
        elif feasible[at]:
            assert found[at] == 0


def soft(key, skew=1):
    return {
        "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }  # fmt: skip


def test_many_domains_weigh_more_than_few():
    """The weight is the logarithm of the number of domains and two, for each constraint its own.

    Two zones and six racks, counts such that another base, another offset, or one weight for both
    gives other points (worked out by hand from upstream's formula)."""
    zones, racks = ("x", "x", "x", "y", "y", "y"), ("1", "2", "3", "4", "5", "6")
    pods = (0, 3, 1, 2, 0, 5)
    there, placed = [], {}
    for at, (zone, rack, count) in enumerate(zip(zones, racks, pods, strict=True)):
        name = f"n{at}"
        there.append(
            {
                "metadata": {"name": name, "labels": {"zone": zone, "rack": rack}},
                "spec": {},
                "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
            }
        )
        meta = {"namespace": "default", "labels": {"app": "a"}}
        placed[name] = [
            {"metadata": {"name": f"{name}-{one}", "uid": f"{name}-{one}", **meta}, "spec": {}}
            for one in range(count)
        ]
    spec = {
        "containers": [{"name": "c"}],
        "topologySpreadConstraints": [soft("zone", 2), soft("rack")],
    }
    pod = {"metadata": {"name": "p", "namespace": "default", "labels": {"app": "a"}}, "spec": spec}
    found = PREFERRED_SPREAD.points(
        pod_info_of(pod).shape, snapshot_of((there, placed)), np.ones(6, bool)
    )
    raw = []
    for zone, count in zip(zones, pods, strict=True):
        in_zone = sum(other for where, other in zip(zones, pods, strict=True) if where == zone)
        raw.append(math.floor(in_zone * math.log(4) + 1 + count * math.log(8) + 0.5))
    assert raw == [7, 13, 9, 15, 11, 21]
    most, least = max(raw), min(raw)
    assert found.tolist() == [100 * (most + least - one) // most for one in raw]
