import pytest

from tests.support.history import Answered, Bookmark, Listed, Seen, Value
from tests.support.watch_log import log_faults

FIRST = Listed(5, {"a": Value(1, 3)})
STORY = [
    FIRST, Seen("MODIFIED", "a", Value(2, 6)), Seen("ADDED", "b", Value(3, 7)), Bookmark(9),
    Seen("DELETED", "a", Value(2, 10)), Seen("ADDED", "a", Value(4, 11)), Bookmark(12),
]  # fmt: skip
LATER = Listed(8, {"a": Value(2, 6), "b": Value(3, 7)})
OTHER = [LATER, *STORY[4:]]
LAST = Listed(12, {"a": Value(4, 11), "b": Value(3, 7)})
ANSWERED = [Answered("a", Value(2, 6), 5), Answered("b", Value(3, 7), 6)]


def test_one_log_told_to_several_has_no_faults():
    assert log_faults([STORY, OTHER], [LATER, LAST], ANSWERED) == []


@pytest.mark.parametrize("missing", [1, 2, 4, 5])
def test_what_one_was_told_another_must_have_seen(missing):
    short = STORY[:missing] + STORY[missing + 1 :]
    assert log_faults([STORY, short], [], [])


def test_an_answered_write_that_nobody_saw_is_found():
    lost = [*ANSWERED, Answered("c", Value(9, 8), 7)]
    assert "was not seen" in log_faults([STORY], [], lost)[0]


@pytest.mark.parametrize(
    "story",
    [
        [*STORY, STORY[-2]],
        [FIRST, STORY[2], STORY[1]],
        [*STORY, Bookmark(11)],
        [*STORY, Bookmark(13), Seen("ADDED", "c", Value(5, 13))],
        [*STORY, LATER],
    ],
    ids=["twice", "out of order", "a bookmark back", "after its bookmark", "a list back"],
)
def test_what_is_out_of_order_is_found(story):
    assert "after revision" in log_faults([story], [], [])[0]


@pytest.mark.parametrize(
    "other",
    [Seen("ADDED", "b", Value(8, 7)), Seen("ADDED", "c", Value(3, 7)),
     Seen("MODIFIED", "b", Value(3, 7))],
)  # fmt: skip
def test_a_revision_is_the_same_change_for_everybody(other):
    assert any("to others" in one for one in log_faults([STORY, [FIRST, other]], [], []))


@pytest.mark.parametrize(
    "values",
    [{}, {"a": Value(4, 11)}, {**LAST.values, "c": Value(9, 2)}, {**LAST.values, "b": Value(3, 6)}],
)
def test_a_list_is_the_state_of_its_revision(values):
    assert any("in a list at 12" in one for one in log_faults([STORY], [Listed(12, values)], []))


def test_what_is_modified_was_there_and_what_is_added_was_not():
    for kind, name in (("MODIFIED", "c"), ("DELETED", "c"), ("ADDED", "b")):
        story = [*STORY, Seen(kind, name, Value(5, 13)), Bookmark(14)]
        last = Listed(14, dict(LAST.values))
        assert any("when there was" in one for one in log_faults([story], [last], []))


def test_nothing_is_asked_of_spans_that_nobody_watched():
    gap = [[FIRST, Bookmark(6)], [Listed(20, {}), Bookmark(21)]]
    assert log_faults(gap, [Listed(10, {"z": Value(7, 9)}), Listed(21, {})], ANSWERED[1:]) == []
