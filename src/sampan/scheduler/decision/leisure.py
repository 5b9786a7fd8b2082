"""Whether there is time for the details of a decision.

Job: so many decisions a second, and some more at once, are looked at from all sides: what each rule
    cost, which nodes were next best. That takes longer than the decision, the more so the more
    nodes there are.
Owner: the scheduler's loop.
"""

DETAILED_PER_SECOND = 10
DETAILED_AT_ONCE = 32
CROWD = 8  # more pods than these wait: the next decision counts more than the details of this one


class Leisure:
    def __init__(self) -> None:
        self._left = float(DETAILED_AT_ONCE)
        self._since = 0.0

    def take(self, waiting: int, now: float) -> bool:
        """True: this decision may have its details. `waiting`: how many pods are next."""
        if waiting >= CROWD:
            return False
        came = (now - self._since) * DETAILED_PER_SECOND
        self._left, self._since = min(DETAILED_AT_ONCE, self._left + came), now
        if self._left < 1:
            return False
        self._left -= 1
        return True
