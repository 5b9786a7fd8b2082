"""Room of nominated pods, as columns.

Job: sums per node of the requests of those who are at least so important, kept up to date one by
    one, so that a decision does not look at each of them.
Invariant: a sum is what adding them up anew would give.
Owner: Nominator.
"""

from collections.abc import Iterable

import numpy as np

from sampan.scheduler.cache.columns import Columns
from sampan.scheduler.model.arrays import IntArray
from sampan.scheduler.model.assigned_pod import AssignedPod

MOST_PRIORITIES = 16
PODS = ""  # the "resource" of which each pod takes one


class Taken:
    """By those of one priority and above."""

    def __init__(self, columns: Columns, pods: Iterable[tuple[str, AssignedPod]]) -> None:
        self._at = columns.snapshot().at
        self._count = len(columns)
        self.structure = columns.structure
        self.amounts: dict[str, IntArray] = {}
        for node, pod in pods:
            self.add(node, pod, 1)

    def add(self, node: str, pod: AssignedPod, sign: int) -> None:
        at = self._at.get(node)
        if at is not None and at < self._count:
            for name, amount in (*pod.usage.requests, (PODS, 1)):
                column = self.amounts.get(name)
                if column is None:
                    column = self.amounts[name] = np.zeros(self._count, np.int64)
                column[at] += sign * amount

    def without(self, node: str, pod: AssignedPod) -> dict[str, IntArray]:
        """As if one of them were not expected."""
        at = self._at.get(node)
        if at is None:
            return self.amounts
        mine = dict((*pod.usage.requests, (PODS, 1)))
        found = {}
        for name, column in self.amounts.items():
            if name in mine:
                column = column.copy()
                column[at] -= mine[name]
            found[name] = column
        return found
