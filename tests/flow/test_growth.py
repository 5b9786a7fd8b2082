"""Nothing looks at everything for each of N things: by counting how often each line runs.

`make bench-growth` does the same with large N, by processor time and memory.
"""

import pytest

from tests.growth.line_counts import Counts, steep
from tests.growth.runs import lines_of
from tests.growth.workloads import WORKLOADS

N = 8
SHORT = (
    "create N pods",
    "N config maps watched",
    "list of N by pages",
    "N Services",
    "N owners",
    "N volumes for claims that wait",
    "N disruption budgets",
    "N custom objects",
    "N replicas, one by one",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "workload", [item for item in WORKLOADS if item.name in SHORT], ids=lambda item: item.name
)
def test_no_line_runs_more_often_than_the_work_grows(workload):
    least = workload.size * N
    counts = [lines_of(workload, least * factor) for factor in (1, 2, 4)]
    if steep(*counts, least):
        # Or is it where few calls at once become many? Then it does not go on.
        least, counts = 2 * least, [*counts[1:], lines_of(workload, least * 8)]
    found = steep(*counts, least)
    assert not found, "\n".join(map(str, found))


def test_a_line_that_looks_at_everything_each_time_is_found():
    small, middle, large = (
        Counts({("a.py", "linear", 1): 100 * n + 500, ("a.py", "quadratic", 2): n * n // 2})
        for n in (20, 40, 80)
    )
    [growth] = steep(small, middle, large, 20)
    assert growth.where == "a.py:2 quadratic"
