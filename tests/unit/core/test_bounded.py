"""core/bounded.py: never more than its bound, and the oldest entries go first."""

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.bounded import Bounded, FlushedMemo, Recent

BOUNDS = st.integers(1, 40)
KEYS = st.lists(st.integers(0, 60), max_size=300)


@given(BOUNDS, KEYS)
def test_there_are_never_more_entries_than_the_bound(most, keys):
    for memo in (Bounded(most), Recent(most)):
        for number, key in enumerate(keys):
            memo[key] = number
            assert memo[key] == number
            assert len(memo) <= most


@given(BOUNDS, KEYS)
def test_the_oldest_eighth_makes_room_and_nothing_is_lost_before_it_is_full(most, keys):
    memo: Bounded[int, int] = Bounded(most)
    for key in keys:
        before = list(memo)
        memo[key] = key
        if key in before:
            assert list(memo) == before
        elif len(before) < most:
            assert list(memo) == [*before, key]
        else:
            assert list(memo) == [*before[-(-most // 8) :], key]


@given(BOUNDS, KEYS)
def test_only_the_one_that_was_written_longest_ago_leaves_a_record(most, keys):
    record: Recent[int, int] = Recent(most)
    model: OrderedDict[int, int] = OrderedDict()
    for number, key in enumerate(keys):
        record[key] = number
        model.pop(key, None)
        model[key] = number
        while len(model) > most:
            model.popitem(last=False)
        assert list(record.items()) == list(model.items())


@pytest.mark.parametrize("made", [Bounded, Recent])
@given(most=BOUNDS, keys=KEYS)
def test_whoever_asked_hears_of_each_entry_that_made_room(made, most, keys):
    gone = []
    memo = made(most, lambda key, value: gone.append((key, value)))
    live = {}
    for number, key in enumerate(keys):
        memo[key] = number
        live[key] = number
        for key_, value in gone:
            assert live.pop(key_) == value
        gone.clear()
        assert live == memo


@pytest.mark.parametrize("made", [Bounded, Recent])
def test_no_other_way_of_writing_goes_around_the_bound(made):
    memo = made(3)
    memo.update({number: number for number in range(10)})
    assert len(memo) == 3
    memo.update((number, number) for number in range(10, 20))
    assert len(memo) == 3
    memo |= {number: number for number in range(20, 30)}
    assert len(memo) == 3
    assert type(memo) is made
    for number in range(30, 40):
        assert memo.setdefault(number, number) == number
        assert memo.setdefault(number, -1) == number
    assert len(memo) == 3


@given(BOUNDS, KEYS)
def test_a_flushed_memo_forgets_everything_when_it_is_full(most, keys):
    memo: FlushedMemo[int, int] = FlushedMemo(most)
    reader = memo.known
    for key in keys:
        before = dict(reader)
        assert memo.keep(key, -key) == -key
        assert reader == ({} if len(before) >= most else before) | {key: -key}
        assert len(memo) == len(reader) <= most


@pytest.mark.parametrize("made", [Bounded, FlushedMemo, Recent])
def test_a_bound_is_at_least_one(made):
    with pytest.raises(AssertionError):
        made(0)
