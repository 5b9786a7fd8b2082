"""What each rule of a decision cost."""

from sampan.scheduler.decision.rule_costs import FILTER, SCORE, RuleCosts
from tests.support.virtual_time import LoopClock


class SteppingClock(LoopClock):
    """Each question costs a millisecond."""

    def __init__(self):
        super().__init__()
        self.at = 0.0

    def monotonic(self):
        self.at += 0.001
        return self.at


def test_costs_add_up_by_rule_and_the_dearest_is_first():
    costs = RuleCosts(SteppingClock())
    assert costs.timed((SCORE, "ImageLocality"), max, 3, 5) == 5
    for _ in range(2):
        costs.timed((FILTER, "NodeName"), min, 3, 5)
    assert costs.text() == "Filter NodeName 2000 µs, Score ImageLocality 1000 µs"
