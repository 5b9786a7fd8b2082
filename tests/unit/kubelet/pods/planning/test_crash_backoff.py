import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.backoff import Backoff
from sampan.kubelet.contracts.spec import RESOURCES_ANNOTATION
from sampan.kubelet.pods.planning.crash_backoff import CRASH, Turn, next_turn, streak_of
from tests.support.worlds.observed_pods import NOW, container, exited_container

MAIN = {"name": "main", "image": "app:1"}


def turn_after(ended, backoff=CRASH):
    return next_turn(MAIN, ended, ended, NOW, backoff)


@pytest.mark.parametrize(
    ("streak", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (5, 160), (6, 300), (50, 300)]
)
def test_pauses_double_from_ten_seconds_to_five_minutes(streak, seconds):
    """[N12]"""
    assert turn_after(exited_container(exit_code=1, streak=streak)).delay_seconds == seconds


def test_the_longest_pause_is_the_settings():
    """[N12]"""
    short = Backoff(first_seconds=10.0, cap_seconds=25.0)
    assert turn_after(exited_container(streak=9), short).delay_seconds == 25.0


def test_more_than_ten_minutes_of_running_are_forgiving():
    """[N12] As upstream: what starts then counts as the first of a new streak."""
    assert turn_after(exited_container(streak=9, ran_seconds=601)) == Turn(1)
    assert turn_after(exited_container(streak=9, ran_seconds=600)).delay_seconds == 300


def test_one_that_never_started_has_not_run_for_long():
    never = replace(exited_container(exit_code=128, streak=2), started_at=0.0)
    assert turn_after(never).delay_seconds == 20


def test_without_the_annotation_the_restart_count_is_taken():
    assert streak_of(MAIN, exited_container(attempt=3)) == 3


@pytest.mark.parametrize(
    "changed", [{"image": "app:2"}, {"resources": {"limits": {"memory": "2Gi"}}}]
)
def test_what_is_made_of_something_else_begins_a_streak_of_its_own(changed):
    """[N12] The image that crashed is not the one that comes."""
    before = {"resources": {"limits": {"memory": "1Gi"}}}
    ended = exited_container(exit_code=1, streak=6)
    notes = {**ended.annotations, RESOURCES_ANNOTATION: json.dumps(before["resources"])}
    ended = replace(ended, annotations=notes)
    assert next_turn(MAIN | before, ended, ended, NOW, CRASH).delay_seconds == 300
    changed_turn = next_turn(MAIN | before | changed, ended, ended, NOW, CRASH)
    assert (changed_turn.streak, changed_turn.delay_seconds) == (1, 0)


@given(st.integers(0, 100), st.floats(0, 10_000))
def test_the_moment_is_never_before_the_end(streak, ago):
    ended = exited_container(streak=streak, ended_ago=ago)
    assert NOW - ago <= turn_after(ended).due <= NOW - ago + 300


def test_an_end_in_the_future_is_no_reason_to_wait():
    """[N12] The clock was set back: the container comes back now, not in an hour."""
    later = exited_container(exit_code=1, streak=3, ended_ago=-3600)
    assert turn_after(later).due == NOW


@pytest.mark.parametrize(
    ("runs", "before", "expected"),
    [
        # The first that is stopped has none before it that ended: the next begins at once.
        (container(streak=0), None, Turn(0)),
        (container(attempt=1, streak=0), exited_container(ended_ago=5), Turn(1, 0, NOW - 5)),
        (
            container(attempt=2, streak=1),
            exited_container(attempt=1, ended_ago=5),
            Turn(2, 10, NOW + 5),
        ),
        (
            container(attempt=2, streak=1),
            exited_container(attempt=1, ended_ago=3600),
            Turn(2, 10, NOW - 3590),
        ),
    ],
)
def test_of_one_that_is_being_stopped_the_end_before_it_counts(runs, before, expected):
    """[N12] As upstream: its own end is not known yet."""
    assert next_turn(MAIN, runs, before, NOW, CRASH) == expected
