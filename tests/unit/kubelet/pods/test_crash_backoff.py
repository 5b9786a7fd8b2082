import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.pods import crash_backoff
from tests.support.worlds.observed_pods import NOW, exited_container


@pytest.mark.parametrize(
    ("streak", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (5, 160), (6, 300), (50, 300)]
)
def test_pauses_double_from_ten_seconds_to_five_minutes(streak, seconds):
    """[N12]"""
    assert crash_backoff.delay_after(exited_container(exit_code=1, streak=streak)) == seconds


def test_ten_minutes_of_running_are_forgiving():
    """[N12]"""
    assert crash_backoff.delay_after(exited_container(streak=9, ran_seconds=600)) == 0
    assert crash_backoff.delay_after(exited_container(streak=9, ran_seconds=599)) == 300


def test_without_the_annotation_the_restart_count_is_taken():
    assert crash_backoff.streak_of(exited_container(attempt=3)) == 3


@given(st.integers(0, 100), st.floats(0, 10_000))
def test_the_moment_is_never_before_the_end(streak, ago):
    ended = exited_container(streak=streak, ended_ago=ago)
    assert NOW - ago <= crash_backoff.due_at(ended, NOW) <= NOW - ago + 300


def test_an_end_in_the_future_is_no_reason_to_wait():
    """[N12] The clock was set back: the container comes back now, not in an hour."""
    later = exited_container(exit_code=1, streak=3, ended_ago=-3600)
    assert crash_backoff.due_at(later, NOW) == NOW
