from collections import Counter

import pytest

from sampan.controllers.nodes.zones import (
    EvictionPace,
    ZoneState,
    all_down,
    by_zone_and_readiness,
    evictions_per_second,
    zone_of,
    zones_of,
)


def node(ready, zone="a"):
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    labels = {"topology.kubernetes.io/zone": zone}
    return {"metadata": {"labels": labels}, "status": {"conditions": conditions}}


def nodes(ready, fallen, zone="a"):
    return [*[node(True, zone)] * ready, *[node(False, zone)] * fallen]


def zones_in(found):
    counts = Counter(entry for one in found for entry in by_zone_and_readiness(one))
    return zones_of(counts, counts.__getitem__)


@pytest.mark.parametrize(
    ("ready", "fallen", "state", "rate"),
    [
        (10, 0, ZoneState.NORMAL, 0.1),
        (1, 2, ZoneState.NORMAL, 0.1),  # two are never a disruption
        (4, 6, ZoneState.PARTIAL, 0.0),
        (40, 60, ZoneState.PARTIAL, 0.01),
        (0, 3, ZoneState.FULL, 0.0),
    ],
)
def test_the_pace_follows_the_state_of_the_zone(ready, fallen, state, rate):
    zones = zones_in(nodes(ready, fallen))
    [zone] = zones
    assert zones[zone].state is state
    assert evictions_per_second(zones, zone) == rate


def test_a_zone_that_is_down_is_evicted_as_long_as_another_lives():
    zones = zones_in([*nodes(0, 3), *nodes(3, 0, "b")])
    assert not all_down(zones)
    assert evictions_per_second(zones, zone_of(node(False))) == 0.1


def test_one_eviction_per_so_many_seconds():
    pace = EvictionPace()
    assert pace.seconds_left("a", 100.0) == 0.0
    pace.used("a", 0.1, 100.0)
    assert pace.seconds_left("a", 104.0) == 6.0
    assert pace.seconds_left("b", 104.0) == 0.0


def test_nodes_that_are_taken_down_on_purpose_are_not_counted():
    planned = node(False)
    planned["metadata"]["labels"]["node.kubernetes.io/exclude-disruption"] = ""
    zones = zones_in([*nodes(2, 0), *[planned] * 9])
    [zone] = zones
    assert zones[zone].state is ZoneState.NORMAL
    assert evictions_per_second(zones, zone) == 0.1
