"""Counts that are kept as objects come, change and go."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.tally import Tally


def by_colour(obj):
    return (obj["team"], obj["colour"]) if obj["colour"] else None


OBJECTS = st.builds(
    lambda team, colour: {"team": team, "colour": colour},
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "red", "blue"]),
)
CHANGES = st.lists(st.tuples(st.sampled_from("klmn"), st.none() | OBJECTS), max_size=40)


@given(CHANGES)
def test_the_counts_are_those_of_a_recount(changes):
    tally, there = Tally(by_colour), {}
    for key, obj in changes:
        tally.put(key, obj)
        there[key] = obj
    for team in ("a", "b"):
        seen = [by_colour(obj) for obj in there.values() if obj is not None]
        assert tally.of(team) == Counter(item[1] for item in seen if item and item[0] == team)


def test_a_group_that_is_empty_leaves_nothing():
    tally = Tally(by_colour)
    tally.put("k", {"team": "a", "colour": "red"})
    tally.put("k", None)
    assert (tally.of("a"), tally._groups, tally._seen, tally._shared) == ({}, {}, {}, {})
