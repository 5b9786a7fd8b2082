import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.controllers.workloads.rollout import (
    DESIRED,
    MAXIMUM,
    new_set_size,
    scaled_sets,
    scaled_value,
    shrunk_old_sets,
    surge_and_unavailable,
)


def deployment(replicas, surge="25%", unavailable="25%"):
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"metadata": {"name": "d"}, "spec": {"replicas": replicas, "strategy": strategy}}


def replica_set(name, replicas, available=None, desired=None, most=None):
    annotations = {}
    if desired is not None:
        annotations[DESIRED] = str(desired)
    if most is not None:
        annotations[MAXIMUM] = str(most)
    return {
        "metadata": {"name": name, "creationTimestamp": name, "annotations": annotations},
        "spec": {"replicas": replicas},
        "status": {"availableReplicas": replicas if available is None else available},
    }


def test_numbers_and_percentages():
    assert scaled_value(3, 10, round_up=True) == 3
    assert scaled_value("25%", 10, round_up=True) == 3
    assert scaled_value("25%", 10, round_up=False) == 2


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [(4, "25%", "25%", (1, 1)), (10, 0, 0, (0, 1)), (1, "25%", "25%", (1, 0)), (3, 0, 5, (0, 3))],
)
def test_surge_is_rounded_up_and_unavailable_down(replicas, surge, unavailable, expected):
    assert surge_and_unavailable(deployment(replicas, surge, unavailable)) == expected


def test_the_new_set_grows_into_the_surge():
    wanted = deployment(10, 3, 2)
    old = replica_set("old", 10)
    assert new_set_size(wanted, [old], None) == 3
    new = replica_set("new", 5)
    assert new_set_size(wanted, [replica_set("old", 8), new], new) == 5
    assert new_set_size(wanted, [replica_set("old", 0), new], new) == 10
    large = replica_set("new", 12)
    assert new_set_size(wanted, [large], large) == 10


def test_unhealthy_pods_of_old_sets_go_first():
    wanted = deployment(10, 3, 2)
    old = replica_set("old", 10, available=8)
    assert shrunk_old_sets(wanted, [old], replica_set("new", 0, 0)) == {"old": 8}


def test_an_outdated_status_does_not_shrink_a_set_twice():
    wanted = deployment(4, 0, 1)
    old = replica_set("old", 3, available=4)  # its status is from before it was shrunk
    assert shrunk_old_sets(wanted, [old], replica_set("new", 0, 0)) == {}


def test_scaling_one_set_is_simple():
    wanted = deployment(5)
    assert scaled_sets(wanted, replica_set("new", 3), [replica_set("old", 0)]) == {"new": 5}
    assert scaled_sets(wanted, None, [replica_set("old", 3)]) == {"old": 5}
    assert scaled_sets(wanted, replica_set("new", 5), []) == {}


def test_scaling_several_sets_is_proportional():
    """The example of upstream's documentation: 10 to 15 in the middle of a rollout."""
    new, old = replica_set("new", 5, 0, 10, 13), replica_set("old", 8, 8, 10, 13)
    assert scaled_sets(deployment(15, 3, 2), new, [old]) == {"new": 7, "old": 11}


def test_old_sets_of_a_complete_rollout_go():
    new, old = replica_set("new", 3, 3, 3), replica_set("old", 1)
    assert scaled_sets(deployment(3), new, [old]) == {"old": 0}


SIZES = st.integers(0, 12)


@pytest.mark.slow
@given(SIZES, SIZES, SIZES, st.integers(0, 4), st.integers(0, 4), st.data())
def test_a_rollout_stays_within_its_budgets_and_ends(replicas, old, new, surge, unavailable, data):
    """Whatever becomes ready when: never too many, never too few, and it ends."""
    wanted = deployment(replicas, surge, unavailable)
    surge, unavailable = surge_and_unavailable(wanted)
    sizes = {"old": old, "new": new}
    ready = {name: data.draw(st.integers(0, size)) for name, size in sizes.items()}
    for _ in range(200):
        sets = {name: replica_set(name, sizes[name], ready[name]) for name in sizes}
        total, available = sum(sizes.values()), sum(ready.values())
        grown = new_set_size(wanted, list(sets.values()), sets["new"])
        step = {"new": grown} if grown != sizes["new"] else {}
        step = step or shrunk_old_sets(wanted, [sets["old"]], sets["new"])
        sizes |= step
        assert sum(sizes.values()) <= max(total, replicas + surge)
        before = dict(ready)
        ready = {name: min(ready[name], sizes[name]) for name in sizes}
        if "old" in step:
            lost = before["old"] - ready["old"]
            assert lost == 0 or available - lost >= replicas - unavailable
        if not step and ready == sizes:
            break
        for name in sizes:
            ready[name] += data.draw(st.integers(0, 1)) if ready[name] < sizes[name] else 0
    else:
        ready = dict(sizes)
    for _ in range(50):  # when all pods become ready, it ends
        sets = {name: replica_set(name, sizes[name]) for name in sizes}
        grown = new_set_size(wanted, list(sets.values()), sets["new"])
        step = {"new": grown} if grown != sizes["new"] else {}
        sizes |= step or shrunk_old_sets(wanted, [sets["old"]], sets["new"])
    assert sizes == {"old": 0, "new": replicas}
