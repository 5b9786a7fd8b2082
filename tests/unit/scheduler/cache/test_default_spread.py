import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.cache.default_spread import SYSTEM_DEFAULTS, Default, Defaults
from sampan.scheduler.filters.pod_topology_spread import SKEWED, evenness
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE
from sampan.scheduler.scores.pod_topology_spread import PREFERRED_SPREAD
from tests.support.generators.random_clusters import cache_of

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def pod(app, name="p", **spec):
    meta = {"name": name, "uid": name, "namespace": "default", "labels": {"app": app}}
    return {"metadata": meta, "spec": {"containers": [{"name": "c"}], **spec}}


def node(number, zone):
    name = f"n{number}"
    labels = {HOST: name} | ({ZONE: zone} if zone else {})
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


def cluster(there):
    """`there`: for each node its zone, and the apps of its pods."""
    nodes = [node(at, zone) for at, (zone, _) in enumerate(there)]
    placed = {
        f"n{at}": [pod(app, f"{at}-{one}") for one, app in enumerate(apps)]
        for at, (_, apps) in enumerate(there)
    }
    return cache_of(nodes, placed)


_nodes = st.lists(
    st.tuples(st.sampled_from(("x", "y", "")), st.lists(st.sampled_from("ab"), max_size=4)),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(_nodes, st.data())
def test_pods_of_a_service_are_spread_though_they_do_not_ask_for_it(there, data):
    """[S4] Upstream's own constraints (host 3, zone 5, soft), against its formula node by node;
    nodes without a zone take part, and are a domain more."""
    cache = cluster(there)
    cache.columns.workloads.put_service("default/s", {"spec": {"selector": {"app": "a"}}})
    feasible = data.draw(st.lists(st.booleans(), min_size=len(there), max_size=len(there)))
    nodes = cache.snapshot()
    found = PREFERRED_SPREAD.points(pod_info_of(pod("a")).shape, nodes, np.array(feasible))
    scored = [at for at, may in enumerate(feasible) if may]
    if not scored:
        assert found is None
        return
    zones = {there[at][0] for at in scored}
    raw = {}
    for at in scored:
        zone, apps = there[at]
        total = apps.count("a") * math.log(len(scored) + 2) + 3 - 1
        if zone:
            in_zone = sum(more.count("a") for other, more in there if other == zone)
            total += in_zone * math.log(len(zones) + 2) + 5 - 1
        raw[at] = math.floor(total + 0.5)
    most, least = max(raw.values()), min(raw.values())
    for at in scored:
        assert found[at] == 100 * (most + least - raw[at]) // most


def test_who_belongs_to_nobody_or_says_it_himself_is_not_spread_by_default():
    cache = cluster([("x", "a"), ("y", "")])
    points = lambda made: PREFERRED_SPREAD.points(  # noqa: E731
        pod_info_of(made).shape, cache.snapshot(), np.ones(2, bool)
    )
    assert points(pod("a")) is None
    cache.columns.workloads.put_service("default/s", {"spec": {"selector": {"app": "a"}}})
    assert points(pod("a")) is not None
    assert points(pod("b")) is None
    own = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    own["labelSelector"] = {"matchLabels": {"app": "a"}}
    assert points(pod("a", topologySpreadConstraints=[own])) is None


def test_defaults_of_a_configuration_may_be_hard():
    rule = evenness(Defaults((Default(ZONE, 1, True),)))
    cache = cluster([("x", "aa"), ("y", ""), ("", "")])
    shape = pod_info_of(pod("a")).shape
    assert rule.mask(shape, cache.snapshot()) is None
    cache.columns.workloads.put_service("default/s", {"spec": {"selector": {"app": "a"}}})
    nodes = cache.snapshot()
    assert rule.mask(shape, nodes).tolist() == [False, True, False]
    refused = ~rule.mask(shape, nodes)
    assert rule.reasons(shape, nodes, refused) == {
        SKEWED: 1,
        f"{SKEWED} (missing required label)": 1,
    }


def test_the_default_profile_has_the_systems_defaults():
    assert [(one.topology_key, one.max_skew) for one in SYSTEM_DEFAULTS.constraints] == [
        (HOST, 3),
        (ZONE, 5),
    ]
    assert PREFERRED_SPREAD in [one for one, _ in DEFAULT_PROFILE.scores]
