"""core/backoff.py: delays grow, and stop growing at the cap."""

import random

from hypothesis import given
from hypothesis import strategies as st

from sampan.core.backoff import Backoff, with_jitter


def test_the_delay_doubles_from_the_first_to_the_cap():
    backoff = Backoff(first_seconds=10, cap_seconds=300)
    assert [backoff.delay(n) for n in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]


@given(st.floats(0.001, 10), st.floats(10, 1000), st.integers(0, 10_000))
def test_the_delay_never_falls_and_never_exceeds_the_cap(first, cap, failures):
    backoff = Backoff(first, cap)
    assert backoff.delay(failures) <= backoff.delay(failures + 1) <= cap


@given(st.floats(0, 100), st.integers())
def test_jitter_only_lengthens_and_only_by_its_fraction(seconds, seed):
    assert seconds <= with_jitter(seconds, 0.5, random.Random(seed)) <= seconds * 1.5
