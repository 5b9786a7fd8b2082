import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.scores.rule import normalize


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1), st.booleans())
def test_points_are_between_0_and_100_and_keep_the_order(raw, fewest):
    raw = np.array(raw)
    points = normalize(raw, np.ones(len(raw), bool), fewest_is_best=fewest)
    assert points.min() >= 0
    assert points.max() <= 100
    assert points[raw.argmin() if fewest else raw.argmax()] == points.max()


def test_where_nothing_is_raw_all_are_equal():
    none = np.zeros(3, np.int64)
    everything = np.ones(3, bool)
    assert normalize(none, everything, fewest_is_best=True).tolist() == [100] * 3
    assert normalize(none, everything, fewest_is_best=False).tolist() == [0] * 3
