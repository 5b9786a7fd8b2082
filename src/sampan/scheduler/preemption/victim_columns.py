"""Victims over all nodes at once, for a pod that only needs room. Pure.

Job: per node, spare the pods that still fit beside the newcomer, the k-th of every node in one
    expression; then the node that upstream's order of preferences names.
Invariant: the same victims and the same preferences as node by node (preempt.py).
"""

import random
from collections.abc import Sequence

import numpy as np

from sampan.scheduler.cache.columns import Columns
from sampan.scheduler.cache.pod_table import PodTable
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.decision.nominated_pods import Nominator
from sampan.scheduler.decision.nominated_room import PODS
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.pod_info import PodInfo
from sampan.scheduler.preemption.budgets import Budget

_POSITIVE = 2**31  # makes the sum of priorities grow with each victim


def victims_by_room(
    pod: PodInfo,
    columns: Columns,
    may_help: BoolArray,
    budgets: Sequence[Budget],
    nominator: Nominator,
    rng: random.Random,
) -> tuple[str, tuple[AssignedPod, ...], int] | None:
    nodes, table = columns.snapshot(), columns.table
    slots = np.flatnonzero((table.node >= 0) & (table.priority < pod.priority))
    slots = slots[may_help[table.node[slots]]]
    if not len(slots):
        return None
    room = _Room(pod, nodes, columns, nominator)
    room.give_back(slots)
    slots = slots[room.enough()[table.node[slots]]]
    if not len(slots):
        return None
    beyond = _beyond(slots, table, budgets)
    order = np.lexsort((table.started[slots], -table.priority[slots], ~beyond, table.node[slots]))
    slots, beyond = slots[order], beyond[order]
    gone = _not_spared(slots, table, room)
    if not gone.any():
        return None
    slots, beyond = slots[gone], beyond[gone]
    at = _best(slots, beyond, table, len(nodes), rng)
    of_node = table.node[slots] == at
    victims = [table.pods[slot] for slot in slots[of_node]]
    found = sorted(
        (victim for victim in victims if victim), key=lambda item: (-item.priority, item.started)
    )
    return nodes.rows[at].name, tuple(found), int(np.count_nonzero(beyond[of_node]))


class _Room:
    """What is left on each node once the newcomer, and who is expected there, have come."""

    def __init__(
        self, pod: PodInfo, nodes: Snapshot, columns: Columns, nominator: Nominator
    ) -> None:
        table = columns.table
        self._node = table.node
        # What each pod of the table takes, and what each node has left.
        self._takes: dict[str, IntArray] = {PODS: np.ones(len(table.node), np.int64)}
        self._left: dict[str, IntArray] = {PODS: nodes.allowed_pods - nodes.pods - 1}
        for name, amount in pod.shape.usage.requests:
            self._takes[name] = table.requests(name)
            allocatable = nodes.allocatable.get(name)
            has = np.zeros(len(nodes), np.int64) if allocatable is None else allocatable
            self._left[name] = has - nodes.requested.get(name, 0) - amount
        for name, taken in nominator.taken_by_others(pod.uid, pod.priority, columns).items():
            if name in self._left:
                self._left[name] = self._left[name] - taken

    def give_back(self, slots: IntArray) -> None:
        for name, left in self._left.items():
            np.add.at(left, self._node[slots], self._takes[name][slots])

    def enough(self) -> BoolArray:
        enough: BoolArray = np.logical_and.reduce([left >= 0 for left in self._left.values()])
        return enough

    def spare(self, slots: IntArray) -> BoolArray:
        """Of pods on different nodes, those that still fit; they take their room again."""
        at = self._node[slots]
        fits: BoolArray = np.ones(len(slots), np.bool_)
        for name, left in self._left.items():
            # Of what the newcomer asks for, nobody can take more than is left.
            fits &= self._takes[name][slots] <= left[at]
        for name, left in self._left.items():
            left[at[fits]] -= self._takes[name][slots[fits]]
        return fits


def _not_spared(slots: IntArray, table: PodTable, room: _Room) -> BoolArray:
    """Slots come by node, and within a node in the order in which pods are spared."""
    node = table.node[slots]
    first = np.flatnonzero(np.r_[True, node[1:] != node[:-1]])
    counts = np.diff(np.r_[first, len(node)])
    turn = np.arange(len(node)) - np.repeat(first, counts)
    by_turn = np.argsort(turn, kind="stable")
    gone: BoolArray = np.zeros(len(slots), np.bool_)
    ends = np.cumsum(np.bincount(turn))
    for start, end in zip(np.r_[0, ends[:-1]], ends, strict=True):
        those = by_turn[start:end]
        gone[those] = ~room.spare(slots[those])
    return gone


def _beyond(slots: IntArray, table: PodTable, budgets: Sequence[Budget]) -> BoolArray:
    """Pods beyond a budget: on each node, the budget is used up by the most important first."""
    beyond: BoolArray = np.zeros(len(slots), np.bool_)
    if not budgets:
        return beyond
    order = np.lexsort((table.started[slots], -table.priority[slots], table.node[slots]))
    pods = [table.pods[slot] for slot in slots[order]]
    node = table.node[slots][order]
    for budget in budgets:
        covered = np.array([pod is not None and budget.covers(pod) for pod in pods], np.bool_)
        before: IntArray = np.cumsum(covered) - covered
        first = np.r_[True, node[1:] != node[:-1]]
        at_first = np.maximum.accumulate(np.where(first, before, 0))
        beyond[order] |= covered & (before - at_first >= budget.allowed)
    return beyond


def _best(
    slots: IntArray, beyond: BoolArray, table: PodTable, count: int, rng: random.Random
) -> int:
    node, priority = table.node[slots], table.priority[slots]
    there: BoolArray = np.zeros(count, np.bool_)
    there[node] = True
    highest = np.full(count, -_POSITIVE - 1, np.int64)
    np.maximum.at(highest, node, priority)
    total = np.zeros(count, np.int64)
    np.add.at(total, node, priority + _POSITIVE)
    earliest = np.full(count, np.inf)
    of_highest = priority == highest[node]
    np.minimum.at(earliest, node[of_highest], table.started[slots][of_highest])
    for least in (
        np.bincount(node[beyond], minlength=count),
        highest,
        total,
        np.bincount(node, minlength=count),
        -earliest,
    ):
        there &= least == least[there].min()
    ties = np.flatnonzero(there)
    return int(ties[rng.randrange(len(ties))])
