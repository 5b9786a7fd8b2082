import pytest

from tests.support.history import (
    Answered,
    Bookmark,
    Listed,
    Seen,
    Value,
    number_of,
    revision_faults,
    unseen,
    watch_faults,
    whole,
)

LIST = Listed(5, {"a": Value(1, 3)})
GOOD = [
    LIST, Seen("MODIFIED", "a", Value(2, 6)), Seen("ADDED", "b", Value(1, 7)), Bookmark(9),
    Seen("DELETED", "a", Value(2, 10)), Seen("ADDED", "a", Value(3, 11)),
]  # fmt: skip


def test_a_true_story_has_no_faults():
    assert watch_faults([*GOOD, Listed(11, {"a": Value(3, 11), "b": Value(1, 7)})]) == []


@pytest.mark.parametrize("missing", [1, 4])
def test_a_change_that_was_missed_is_found_by_the_next_one(missing):
    story = [*GOOD, Seen("MODIFIED", "b", Value(2, 12))]
    assert watch_faults(story[:missing] + story[missing + 1 :])


def test_what_comes_twice_or_late_is_found():
    assert watch_faults([*GOOD, GOOD[-1]])
    assert watch_faults([LIST, GOOD[2], GOOD[1]])
    assert watch_faults([*GOOD, Bookmark(8)])
    assert watch_faults([*GOOD, LIST])


def test_an_answered_write_that_no_event_tells_of_is_found():
    answered = [Answered("a", Value(2, 6), 5), Answered("c", Value(1, 8), 5)]
    assert unseen(GOOD, answered) == [f"{answered[1]} was not seen"]
    later = Answered("c", Value(1, 20), 5)
    assert unseen(GOOD, [later]) == [], "it may still come"


def test_revisions_that_go_back_or_come_twice_are_found():
    assert revision_faults([Answered("a", Value(1, 6), 5), Answered("b", Value(1, 7), 6)]) == []
    assert revision_faults([Answered("a", Value(1, 6), 6)])
    assert revision_faults([Answered("a", Value(1, 6), 5), Answered("b", Value(1, 6), 5)])


def test_half_a_value_is_found():
    data = whole(7, 100)
    assert number_of(data) == 7
    for broken in ({**data, "filler": data["filler"][:50]}, {**data, "number": "8"}):
        with pytest.raises(AssertionError, match="half a value"):
            number_of(broken)
