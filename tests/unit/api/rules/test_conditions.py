"""Conditions and their transition times."""

from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.conditions import (
    condition_of,
    find,
    is_true,
    transition_time,
    with_condition,
    without_condition,
)

READY = {"type": "Ready", "status": "True", "reason": "Up"}
CONDITIONS = st.fixed_dictionaries({
    "type": st.sampled_from(["Ready", "Initialized"]),
    "status": st.sampled_from(["True", "False", "Unknown"]),
    "reason": st.sampled_from(["A", "B"]),
})  # fmt: skip


def test_a_new_condition_goes_to_the_end_with_the_time_of_now():
    other = {"type": "Initialized", "status": "True"}
    assert with_condition([other], READY, 0.0) == [
        other,
        {**READY, "lastTransitionTime": "1970-01-01T00:00:00Z"},
    ]


def test_the_time_stays_while_the_status_stays_and_unnamed_fields_stay():
    before = [{**READY, "lastTransitionTime": "2020-01-01T00:00:00Z", "lastProbeTime": None}]
    (same,) = with_condition(before, {**READY, "reason": "Still up"}, 9.0)
    assert same["lastTransitionTime"] == "2020-01-01T00:00:00Z"
    assert (same["reason"], same["lastProbeTime"]) == ("Still up", None)
    (changed,) = with_condition(before, {"type": "Ready", "status": "False"}, 9.0)
    assert changed["lastTransitionTime"] == "1970-01-01T00:00:09Z"


def test_conditions_are_found_by_type():
    obj = {"status": {"conditions": [READY]}}
    assert condition_of(obj, "Ready") is READY
    assert condition_of({}, "Ready") is None
    assert is_true(obj, "Ready")
    assert not is_true(obj, "Initialized")
    assert without_condition([READY], "Ready") == []


@given(st.lists(CONDITIONS, max_size=6), CONDITIONS)
def test_setting_what_is_there_changes_nothing(earlier, wanted):
    conditions = []
    for number, one in enumerate(earlier):
        conditions = with_condition(conditions, one, number)
    once = with_condition(conditions, wanted, 100.0)
    assert with_condition(once, wanted, 200.0) == once
    assert find(once, wanted["type"])["status"] == wanted["status"]
    assert len({one["type"] for one in once}) == len(once)


@given(CONDITIONS, CONDITIONS)
def test_a_transition_is_a_change_of_status(before, after):
    known = {**before, "lastTransitionTime": "1970-01-01T00:00:00Z"}
    found = transition_time(known, after["status"], 3600.0)
    same = before["status"] == after["status"]
    assert found == ("1970-01-01T00:00:00Z" if same else "1970-01-01T01:00:00Z")
    assert transition_time(None, after["status"], 3600.0) == "1970-01-01T01:00:00Z"
