from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sampan.controllers.jobs.job_indexes import NO_INDEXES, Indexes, indexes_of, parse_indexes

SETS = st.frozensets(st.integers(0, 50))
HUGE = 2_000_000_000


def members(indexes, below=60):
    return {index for index in range(below) if index in indexes}


def test_runs_are_joined_as_upstream_writes_them():
    assert str(indexes_of([0, 1, 3, 4, 5, 7])) == "0,1,3-5,7"
    assert str(NO_INDEXES) == ""


def test_indexes_beyond_the_completions_are_left_out():
    assert members(parse_indexes("0,3-9", 5)) == {0, 3, 4}
    assert parse_indexes(None, 5) == NO_INDEXES


def test_parts_that_make_no_sense_are_left_out():
    assert str(parse_indexes("x,1,2-y,²,4", 9)) == "1,4"


def test_two_billion_indexes_are_one_interval():
    everything = parse_indexes(f"0-{HUGE}", HUGE)
    assert everything.intervals == ((0, HUGE - 1),)
    assert everything.total() == HUGE
    assert everything.missing(HUGE, 5) == []
    assert indexes_of([0, HUGE - 1]).missing(HUGE, 3) == [1, 2, 3]
    assert Indexes().missing(HUGE, 2) == [0, 1]


@given(SETS)
def test_what_is_written_reads_back(indexes):
    assert parse_indexes(str(indexes_of(indexes)), 51) == indexes_of(indexes)


@given(SETS, SETS)
def test_they_are_sets(mine, others):
    one, other = indexes_of(mine), indexes_of(others)
    assert members(one | other) == mine | others
    assert one.total() == len(mine)
    assert one.shared_with(other) == len(mine & others)
    assert one.missing(50, 9) == sorted(set(range(50)) - mine)[:9]


@given(SETS, SETS)
def test_intervals_are_in_order_and_never_touch(mine, others):
    intervals = (indexes_of(mine) | indexes_of(others)).intervals
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(intervals))
