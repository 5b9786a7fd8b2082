"""The pods on nodes, one slot each: what preemption weighs, as columns.

Job: node, priority, start and requests of every pod, kept up to date pod by pod.
Invariant: a slot that is in use has the index of its pod's node; a free one has NOWHERE.
Owner: Columns.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sampan.scheduler.model.arrays import IntArray
from sampan.scheduler.model.assigned_pod import AssignedPod

NOWHERE = -1
_FIRST_CAPACITY = 64


class PodTable:
    def __init__(self) -> None:
        self._capacity = _FIRST_CAPACITY
        self._slots: dict[str, int] = {}  # by uid
        self._free = list(range(_FIRST_CAPACITY - 1, -1, -1))
        self.pods: list[AssignedPod | None] = [None] * _FIRST_CAPACITY
        self.node: IntArray = np.full(_FIRST_CAPACITY, NOWHERE, np.int64)
        self.priority: IntArray = np.zeros(_FIRST_CAPACITY, np.int64)
        self.started: NDArray[np.float64] = np.zeros(_FIRST_CAPACITY, np.float64)
        self._requests: dict[str, IntArray] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def put(self, at: int, pod: AssignedPod) -> None:
        if not self._free:
            self._grow()
        slot = self._slots[pod.uid] = self._free.pop()
        self.pods[slot] = pod
        self.node[slot] = at
        self.priority[slot] = pod.priority
        self.started[slot] = pod.started
        for name, amount in pod.usage.requests:
            self.requests(name)[slot] = amount

    def remove(self, pod: AssignedPod) -> None:
        slot = self._slots.pop(pod.uid)
        self.pods[slot] = None
        self.node[slot] = NOWHERE
        for name, _ in pod.usage.requests:
            self._requests[name][slot] = 0
        self._free.append(slot)

    def refresh(self, pod: AssignedPod) -> None:
        """Something changed that no rule looks at."""
        slot = self._slots.get(pod.uid)
        if slot is not None:
            self.pods[slot] = pod
            self.started[slot] = pod.started

    def moved(self, old: int, new: int) -> None:
        """A node has another index now."""
        self.node[self.node == old] = new

    def requests(self, name: str) -> IntArray:
        column = self._requests.get(name)
        if column is None:
            column = self._requests[name] = np.zeros(self._capacity, np.int64)
        return column

    def on(self, at: int) -> Iterable[AssignedPod]:
        for slot in np.flatnonzero(self.node == at):
            pod = self.pods[slot]
            assert pod is not None
            yield pod

    def _grow(self) -> None:
        old, self._capacity = self._capacity, self._capacity * 2
        more = np.zeros(old, np.int64)
        self._free = list(range(self._capacity - 1, old - 1, -1))
        self.pods += [None] * old
        self.node = np.concatenate([self.node, more + NOWHERE])
        self.priority = np.concatenate([self.priority, more])
        self.started = np.concatenate([self.started, more.astype(np.float64)])
        for name, column in self._requests.items():
            self._requests[name] = np.concatenate([column, more])
