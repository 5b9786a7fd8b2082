from hypothesis import given
from hypothesis import strategies as st

from sampan.controllers.jobs.job_indexes import indexes_text, parse_indexes


def test_runs_are_joined_as_upstream_writes_them():
    assert indexes_text([0, 1, 3, 4, 5, 7]) == "0,1,3-5,7"
    assert indexes_text([]) == ""


def test_indexes_beyond_the_completions_are_left_out():
    assert parse_indexes("0,3-9", 5) == {0, 3, 4}
    assert parse_indexes(None, 5) == frozenset()


@given(st.frozensets(st.integers(0, 50)))
def test_what_is_written_reads_back(indexes):
    assert parse_indexes(indexes_text(indexes), 51) == indexes
