from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.controllers.services.topology_hints import (
    NO_NODE_FACTS,
    NO_ZONE,
    TOO_BUSY,
    NoHints,
    preferred_hints,
    proportional,
    ratios_of,
)


def endpoint(zone="a", node="n1", ready=True):
    found = {"conditions": {"ready": ready}, "nodeName": node}
    return {**found, "zone": zone} if zone else found


def node(zone, cpu="4", ready="True", **labels):
    if zone:
        labels["topology.kubernetes.io/zone"] = zone
    status = {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": {"name": "n", "labels": labels}, "status": status}


def service(distribution):
    return {"metadata": {}, "spec": {"trafficDistribution": distribution}}


def test_a_preference_for_the_zone_or_the_node():
    zones = {"forZones": [{"name": "a"}]}
    assert preferred_hints(service("PreferClose"), endpoint()) == zones
    assert preferred_hints(service("PreferSameZone"), endpoint()) == zones
    both = {**zones, "forNodes": [{"name": "n1"}]}
    assert preferred_hints(service("PreferSameNode"), endpoint()) == both
    assert preferred_hints(service("PreferSameZone"), endpoint(zone="")) is None
    assert preferred_hints(service("PreferSameZone"), endpoint(ready=False)) is None
    assert preferred_hints({"metadata": {}, "spec": {}}, endpoint()) is None


def test_a_zone_counts_as_much_as_its_ready_processors():
    nodes = [
        node("a", "6"),
        node("b", "1500m"),
        node("b", "500m"),
        node("b", "99", ready="False"),
        node("c", "99", **{"node-role.kubernetes.io/control-plane": ""}),
    ]
    assert ratios_of(nodes) == {"a": 0.75, "b": 0.25}
    assert ratios_of([*nodes, node("")]) is None


@pytest.mark.parametrize(
    ("zones", "ratios", "why"),
    [
        ("ab", None, NO_NODE_FACTS),
        ("ab", {"a": 1.0}, NO_NODE_FACTS),
        (["a", "b", "b", ""], {"a": 0.5, "b": 0.5}, NO_ZONE),
        ("a", {"a": 0.5, "b": 0.5}, "Insufficient number of endpoints (1 endpoints, 2 zones)"),
        ("aab", {"a": 0.5, "b": 0.5}, f"{TOO_BUSY} (3 endpoints, 2 zones)"),
    ],
)
def test_without_what_it_takes_nobody_gets_a_hint(zones, ratios, why):
    endpoints = {str(number): endpoint(zone) for number, zone in enumerate(zones)}
    with pytest.raises(NoHints) as raised:
        proportional(endpoints, ratios)
    assert str(raised.value) == why


def test_endpoints_are_lent_to_the_zone_that_lacks_them():
    endpoints = {str(number): endpoint("a") for number in range(4)}
    found = proportional(endpoints, {"a": 0.5, "b": 0.5})
    assert Counter(found.values()) == {"a": 2, "b": 2}


@given(
    st.lists(st.sampled_from("abc"), max_size=30),
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 10), min_size=2),
)
def test_every_zone_gets_its_least_and_every_endpoint_a_zone(zones, weights):
    total = sum(weights.values())
    ratios = {zone: weight / total for zone, weight in weights.items()}
    endpoints = {f"{number:02}": endpoint(zone) for number, zone in enumerate(zones)}
    try:
        found = proportional(endpoints, ratios)
    except NoHints:
        return  # too few to be divided: shown above
    assert found.keys() == endpoints.keys()
    counts = Counter(found.values())
    for zone, ratio in ratios.items():
        # At most a fifth busier than its share, give or take one endpoint that cannot be halved.
        assert counts[zone] + 1 >= ratio * len(zones) / 1.2
