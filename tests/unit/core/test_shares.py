from hypothesis import given
from hypothesis import strategies as st

from sampan.core.shares import Shares


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))
def test_never_more_than_all_and_each_and_nothing_is_kept(steps):
    shares, held = Shares(4, 2), {"a": 0, "b": 0, "c": 0}
    for who, takes in steps:
        if takes:
            room = sum(held.values()) < 4 and held[who] < 2
            assert shares.take(who) == room
            held[who] += room
        elif held[who]:
            shares.give_back(who)
            held[who] -= 1
    assert shares.taken == sum(held.values())
    assert shares._taken == {who: count for who, count in held.items() if count}
