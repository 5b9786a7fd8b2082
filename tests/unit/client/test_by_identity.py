"""client/by_identity.py: one result for one object, and none for an equal one."""

import gc
import weakref

from sampan.client.by_identity import (
    LARGE,
    OF_ANY_SIZE,
    by_identity,
    by_identity_and,
)


class Value(list):
    """What a weak reference can point at."""


def test_an_answer_is_of_the_very_value_and_of_no_equal_one():
    asked = []

    @by_identity(8)
    def length(about):
        asked.append(about)
        return len(about)

    first, equal = [1], [1]
    assert [length(first), length(first), length(equal)] == [1, 1, 1]
    assert [about is first for about in asked] == [True, False]


def test_an_answer_that_is_nothing_is_remembered_too():
    asked = []
    nothing = by_identity(8)(asked.append)
    value = [1]
    assert (nothing(value), nothing(value)) == (None, None)
    assert asked == [value]


def test_what_is_remembered_is_bounded_and_never_of_another():
    @by_identity(3)
    def only(about):
        return about[0]

    kept = []
    for number in range(100):
        value = Value([number])
        assert only(value) == number
        kept.append(weakref.ref(value))
        del value
    gc.collect()
    assert sum(each() is not None for each in kept) <= 3


def test_a_second_argument_is_compared():
    asked = []

    @by_identity_and(8)
    def pair(about, further):
        asked.append(further)
        return (*about, further)

    value = [1]
    assert [pair(value, "a"), pair(value, "b"), pair(value, "a")] == [(1, "a"), (1, "b"), (1, "a")]
    assert asked == ["a", "b"]


def test_a_large_value_is_not_kept_but_where_it_is_meant():
    asked = []
    once, always = by_identity(8)(asked.append), by_identity(8, OF_ANY_SIZE)(asked.append)
    further = by_identity_and(8)(lambda about, _: asked.append(about))
    small, large = [1], [1] * (LARGE + 1)
    for remembered, value, times in ((once, small, 1), (once, large, 2), (always, large, 1)):
        asked.clear()
        assert (remembered(value), remembered(value)) == (None, None)
        assert len(asked) == times
    asked.clear()
    for value in (small, small, large, large):
        further(value, "a")
    assert asked == [small, large, large]


def test_what_may_be_of_any_size_is_not_walked_over():
    class Untouchable(list):
        def __len__(self):
            raise AssertionError

    @by_identity(8, OF_ANY_SIZE)
    def asked(about):
        return "answer"

    assert asked(Untouchable()) == "answer"
