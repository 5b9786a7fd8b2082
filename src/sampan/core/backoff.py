"""Exponential backoff as values: how long to wait after the n-th failure. Pure.

Job: turn a count of failures into a delay. No clock, no state of its own.
Invariant: the delay never falls as failures grow, and never exceeds `cap_seconds`.
"""

import random

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    first_seconds: float
    cap_seconds: float
    factor: float = 2.0

    def delay(self, failures: int) -> float:
        """The wait after `failures` failures in a row (1 = the first one)."""
        if failures <= 0:
            return 0.0
        # Beyond 64 doublings every cap is reached; the bound keeps the power finite.
        return min(self.cap_seconds, self.first_seconds * self.factor ** min(failures - 1, 64))


def with_jitter(seconds: float, fraction: float, rng: random.Random) -> float:
    """`seconds` plus up to `fraction` of itself: many waiters must not wake as one."""
    return seconds * (1.0 + fraction * rng.random())
