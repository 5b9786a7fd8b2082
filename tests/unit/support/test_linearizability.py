import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.linearizability import (
    Create,
    Delete,
    Done,
    Found,
    Missing,
    Operation,
    Read,
    Refused,
    State,
    Undecided,
    Update,
    applied,
    violation,
)


def story(*told):
    """(began, ended, asked, answer); without an end there was no answer."""
    return [
        Operation(began, asked, ended or math.inf, answer) for began, ended, asked, answer in told
    ]


GOOD = {
    "one after the other": story(
        (1, 2, Create(1), Done(5)), (3, 4, Read(), Found(1, 5)), (5, 6, Update(2, 5), Done(7)),
        (7, 8, Delete(7), Done()), (9, 10, Read(), Missing()), (11, 12, Create(3), Done(9)),
    ),
    "a read beside a write sees either": story(
        (1, 2, Create(1), Done(5)), (3, 9, Update(2), Done(7)),
        (4, 5, Read(), Found(1, 5)), (6, 7, Read(), Found(2, 7)),
    ),
    "a write without an answer is done late": story(
        (1, 2, Create(1), Done(5)), (3, None, Update(2, 5), None),
        (4, 5, Read(), Found(1, 5)), (6, 7, Read(), Found(2, 6)), (8, 9, Update(3, 5), Refused()),
    ),
    "or never": story(
        (1, 2, Create(1), Done(5)), (3, None, Delete(), None), (4, 5, Update(2, 5), Done(6)),
        (6, 7, Read(), Found(2, 6)),
    ),
    "two of the same condition, one wins": story(
        (1, 2, Create(1), Done(5)), (3, 6, Update(2, 5), Done(6)), (3, 6, Update(3, 5), Refused()),
        (3, 6, Create(4), Refused()),
    ),
}  # fmt: skip

BAD = {
    "an answered write is lost": story(
        (1, 2, Create(1), Done(5)), (3, 4, Update(2), Done(6)), (5, 6, Read(), Found(1, 5)),
    ),
    "an answered creation is lost": story((1, 2, Create(1), Done(5)), (3, 4, Read(), Missing())),
    "what was deleted comes back": story(
        (1, 2, Create(1), Done(5)), (3, 4, Delete(), Done()), (5, 6, Read(), Found(1, 5)),
    ),
    "two win under one condition": story(
        (1, 2, Create(1), Done(5)), (3, 9, Update(2, 5), Done(6)), (3, 9, Update(3, 5), Done(7)),
    ),
    "two create at once": story((1, 9, Create(1), Done(5)), (1, 9, Create(2), Done(6))),
    "a stale read after a newer one": story(
        (1, 2, Create(1), Done(5)), (3, 9, Update(2), Done(6)),
        (4, 5, Read(), Found(2, 6)), (6, 7, Read(), Found(1, 5)),
    ),
    "a revision that goes back": story((1, 2, Create(1), Done(5)), (3, 4, Update(2), Done(4))),
    "a value with another revision": story(
        (1, 2, Create(1), Done(5)), (3, 4, Read(), Found(1, 6)),
    ),
    "a value of nobody": story((1, 2, Create(1), Done(5)), (3, 4, Read(), Found(9, 6))),
    "a conflict with nothing": story((1, 2, Create(1), Done(5)), (3, 4, Update(2, 5), Refused())),
    "a refused write is seen": story(
        (1, 2, Create(1), Done(5)), (3, 4, Update(2, 4), Refused()), (5, 6, Read(), Found(2, 6)),
    ),
    "a write without an answer takes effect twice": story(
        (1, 2, Create(1), Done(5)), (3, None, Update(2), None), (4, 5, Read(), Found(2, 6)),
        (6, 7, Update(3), Done(7)), (8, 9, Read(), Found(2, 8)),
    ),
    "a write is seen before it was sent": story(
        (1, 2, Create(1), Done(5)), (3, 4, Read(), Found(2, 6)), (5, 6, Update(2), Done(6)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_what_can_have_happened_is_explained(history):
    assert violation(history) == ""


@pytest.mark.parametrize("history", BAD.values(), ids=BAD)
def test_what_cannot_have_happened_is_found(history):
    assert "operations explained" in violation(history)


def test_a_search_that_takes_too_long_is_given_up_and_says_so():
    with pytest.raises(Undecided):
        violation(GOOD["one after the other"], steps=3)


ASKED = st.sampled_from(["read", "create", "update", "update if", "delete", "delete if"])


def simulated(rng, wishes):
    """A store that does one thing at a time, asked by clients that overlap; some hear nothing."""
    state, revision, told, operations = State(), 0, 0, []
    for number, wish in enumerate(wishes, 1):
        asked = {
            "read": Read(), "create": Create(number), "update": Update(number), "delete": Delete(),
            "update if": Update(number, told), "delete if": Delete(told),
        }[wish]  # fmt: skip
        done = Done() if isinstance(asked, Delete) else Done(revision + 1)
        answer, state = next(
            (answer, after)
            for answer in (Missing(), Refused(), done, Found(state.value, revision))
            if (after := applied(state, Operation(0, asked, 1, answer))) is not None
        )
        revision += answer == done
        began, ended = number - rng.random() * 4, number + rng.random() * 4
        if rng.random() < 0.1:
            operations.append(Operation(began, asked))
        else:
            operations.append(Operation(began, asked, ended, answer))
            told = getattr(answer, "revision", 0) or told
    return operations


@given(st.lists(ASKED, max_size=30), st.integers(0, 1000))
def test_whatever_one_store_answers_overlapping_clients_is_explained(wishes, seed):
    assert violation(simulated(random.Random(seed), wishes)) == ""


@given(st.integers(0, 1000))
def test_the_search_agrees_with_trying_every_order(seed):
    """Drawn answers, most of them wrong ones; what is right is decided by brute force."""
    rng = random.Random(seed)
    history = []
    for number in range(1, 6):
        began = rng.randint(0, 8)
        asked = rng.choice([Read(), Create(number), Update(number), Update(number, 1), Delete()])
        is_read = isinstance(asked, Read)
        answer = rng.choice([Found(rng.randint(1, 5), rng.randint(1, 4)), Missing()] if is_read
                            else [Done(rng.randint(1, 4)), Refused(), Missing()])  # fmt: skip
        if isinstance(asked, Delete) and isinstance(answer, Done):
            answer = Done()
        history.append(Operation(began, asked, began + rng.randint(1, 8), answer))
    assert (violation(history) == "") == any(
        explains(order) for order in itertools.permutations(history)
    )


def explains(order):
    state = State()
    for at, operation in enumerate(order):
        if any(later.ended < operation.began for later in order[at + 1 :]):
            return False
        state = applied(state, operation)
        if state is None:
            return False
    return True
