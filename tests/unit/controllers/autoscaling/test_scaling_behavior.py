from hypothesis import given
from hypothesis import strategies as st

from sampan.controllers.autoscaling.scaling_behavior import (
    Bounds,
    Memory,
    Moment,
    apply_behavior,
    longest_window,
    with_first_recommendation,
    with_recommendation,
)


def remembered(*moments):
    return Memory(tuple(Moment(at, amount) for at, amount in moments))


def pace(wanted, current, behavior=None, memory=None, least=1, most=100, now=1000.0):
    memory = with_first_recommendation(memory or Memory(), current, now)
    memory = with_recommendation(memory, wanted, longest_window(behavior), now)
    if (
        current != wanted
        and not memory.added
        and not memory.removed
        and len(memory.recommended) == 2
    ):
        memory = Memory((Moment(now, wanted),))  # as if it had been so all the time
    return apply_behavior(behavior, memory, wanted, current, Bounds(least, most), now)


def test_without_behaviour_it_at_most_doubles_but_four_are_always_allowed():
    assert pace(50, 10).replicas == 20
    assert pace(50, 10).limited == "ScaleUpLimit"
    assert pace(50, 1).replicas == 4


def test_bounds_are_kept():
    assert (pace(15, 10, most=12).replicas, pace(15, 10, most=12).limited) == (
        12,
        "TooManyReplicas",
    )
    assert pace(1, 4, least=3).limited == "TooFewReplicas"


def test_a_new_autoscaler_waits_before_it_shrinks():
    memory = with_recommendation(remembered((1000.0, 10)), 2, 300, 1000.0)
    found = apply_behavior(None, memory, 2, 10, Bounds(1, 100), 1000.0)
    assert (found.replicas, found.stabilized) == (10, "ScaleDownStabilized")
    later = with_recommendation(memory, 2, 300, 1301.0)
    assert apply_behavior(None, later, 2, 10, Bounds(1, 100), 1301.0).replicas == 2


def test_without_behaviour_the_highest_recent_recommendation_counts_also_for_growth():
    memory = with_recommendation(remembered((900.0, 10)), 5, 300, 1000.0)
    found = apply_behavior(None, memory, 5, 4, Bounds(1, 100), 1000.0)
    assert (found.replicas, found.stabilized, found.limited) == (
        8,
        "ScaleDownStabilized",
        "ScaleUpLimit",
    )


def test_growth_can_be_stabilized_too():
    behavior = {
        "scaleUp": {
            "stabilizationWindowSeconds": 60,
            "policies": [{"type": "Percent", "value": 900, "periodSeconds": 15}],
        }
    }
    memory = with_recommendation(remembered((1000.0, 2)), 8, 300, 1000.0)
    found = apply_behavior(behavior, memory, 8, 2, Bounds(1, 100), 1000.0)
    assert (found.replicas, found.stabilized) == (2, "ScaleUpStabilized")


def rules(direction, select, *policies):
    return {
        direction: {
            "selectPolicy": select,
            "stabilizationWindowSeconds": 0,
            "policies": list(policies),
        }
    }


PODS = {"type": "Pods", "value": 3, "periodSeconds": 60}
PERCENT = {"type": "Percent", "value": 50, "periodSeconds": 60}


def test_policies_count_what_was_done_in_their_period():
    behavior = rules("scaleUp", "Max", PODS)
    assert pace(50, 10, behavior).replicas == 13
    lately = Memory((Moment(999.0, 50),), added=(Moment(990.0, 2),))
    assert pace(50, 10, behavior, lately).replicas == 11
    before = Memory((Moment(999.0, 50),), added=(Moment(900.0, 2),))
    assert pace(50, 10, behavior, before).replicas == 13


def test_the_policy_that_changes_most_or_least_is_chosen():
    assert pace(50, 10, rules("scaleUp", "Max", PODS, PERCENT)).replicas == 15
    assert pace(50, 10, rules("scaleUp", "Min", PODS, PERCENT)).replicas == 13
    assert pace(1, 10, rules("scaleDown", "Max", PODS, PERCENT)).replicas == 5
    assert pace(1, 10, rules("scaleDown", "Min", PODS, PERCENT)).replicas == 7
    assert pace(1, 10, rules("scaleDown", "Disabled")).replicas == 10


NUMBERS = st.integers(1, 60)


@given(NUMBERS, NUMBERS, NUMBERS, st.integers(0, 40))
def test_within_bounds_stays_within_bounds(wanted, current, least, more):
    most = least + more
    current = min(max(current, least), most)
    found = pace(wanted, current, least=least, most=most)
    assert least <= found.replicas <= most
