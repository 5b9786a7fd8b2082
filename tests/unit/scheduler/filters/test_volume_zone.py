import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.filters.volume_zone import VOLUME_ZONE
from sampan.scheduler.model.pod_info import pod_info_of
from tests.support.generators.storage_objects import ZONE, claim, node, pod, volume, world

NODES = [node(0, "a"), node(1, "b"), node(2, "")]

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
_places = st.dictionaries(st.sampled_from((ZONE, BETA_ZONE, REGION)), st.sampled_from("ab"))
_labels = st.dictionaries(
    st.sampled_from((ZONE, BETA_ZONE, REGION, "disk")), st.sampled_from(("a", "b", "a__b"))
)


def allowed(node_labels, volume_labels):
    """One node and one volume, as upstream has it."""
    if not any(key in node_labels for key in (ZONE, BETA_ZONE, REGION)):
        return True
    for key, value in volume_labels.items():
        if key == "disk":
            continue
        has = node_labels.get(key)
        if has is None and key == BETA_ZONE:
            has = node_labels.get(ZONE)
        if has not in value.split("__"):
            return False
    return True


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.lists(_places, min_size=1, max_size=4), st.lists(_labels, min_size=1, max_size=2))
def test_the_nodes_are_those_of_the_slow_way(places, labels):
    """[S4]"""
    there, volumes, claims = [], [], []
    for at, one in enumerate(places):
        there.append(node(at, ""))
        there[-1]["metadata"]["labels"] = one
    for at, one in enumerate(labels):
        volumes.append(volume(f"v{at}", 1))
        volumes[-1]["metadata"]["labels"] = one
        claims.append(claim(f"c{at}", bound=f"v{at}"))
    names = [one["metadata"]["name"] for one in claims]
    found = VOLUME_ZONE.mask(pod_info_of(pod(*names)).shape, world(there, volumes, claims))
    expected = [all(allowed(place, one) for one in labels) for place in places]
    assert (found.tolist() if found is not None else [True] * len(places)) == expected


def test_a_volume_with_a_zone_is_used_there():
    """[S4] Nodes without zones are of one zone, which is everywhere."""
    there = volume("v", 1)
    there["metadata"]["labels"] = {ZONE: "b__c"}
    nodes = world(NODES, [there], [claim("c", bound="v")])
    assert VOLUME_ZONE.mask(pod_info_of(pod("c")).shape, nodes).tolist() == [False, True, True]
    old = volume("v", 1)
    old["metadata"]["labels"] = {"failure-domain.beta.kubernetes.io/zone": "a"}
    nodes = world(NODES, [old], [claim("c", bound="v")])
    assert VOLUME_ZONE.mask(pod_info_of(pod("c")).shape, nodes).tolist() == [True, False, True]
    assert VOLUME_ZONE.mask(pod_info_of(pod()).shape, nodes) is None
