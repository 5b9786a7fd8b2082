"""Decisions for pods of one shape, each built on the one before.

Job: what decide.py decides, with the masks and points of the last pod of the same shape kept, and
    only the nodes looked at again whose pods changed since.
Invariant: the decision, the draw of the random number included, is the one of decide.decide().
Owner: the scheduler's loop.
"""

import random
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from sampan.core.bounded import Recent
from sampan.scheduler.cache.columns import Columns
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.decision.decide import (
    Chosen,
    Decision,
    Refusal,
    Refused,
    filter_nodes,
    refused_beforehand,
)
from sampan.scheduler.decision.nominated_pods import (
    NOBODY,
    NominatedFor,
    refused_with,
    with_room_for,
)
from sampan.scheduler.decision.plugin_verdicts import Extra
from sampan.scheduler.decision.rule_costs import FILTER, SCORE, RuleCosts
from sampan.scheduler.filters.rule import Filter
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.profile import Profile

MOST_SHAPES = 64
# More rows than these are faster computed all at once than one by one.
MOST_ROWS = 24
_NOT_FEASIBLE = -1


class Batches:
    def __init__(self, columns: Columns, profile: Profile) -> None:
        self._columns, self._profile = columns, profile
        self._kept: Recent[Hashable, _Kept] = Recent(MOST_SHAPES)  # the least recently used first
        self.costs: RuleCosts | None = None  # None: nobody measures

    def decide(
        self,
        pod: PodShape,
        rng: random.Random,
        expected: NominatedFor = NOBODY,
        first: str = "",
        extra: Extra | None = None,
    ) -> Decision:
        """`expected`: pods that will come to a node and must still fit there; `first`: the node to
        take without looking further, where it will do; `extra`: who else has a say."""
        nodes = self._columns.snapshot()
        if (early := refused_beforehand(pod, nodes, self._profile)) is not None:
            return early
        kept = self._kept_for(pod)
        feasible = kept.feasible(pod, nodes)
        if first and extra is None and self._will_do(first, pod, feasible, expected):
            return Chosen(first, 0, 1)
        if expected:
            feasible = with_room_for(expected, pod, feasible, self._columns, self._profile)
        more: list[Refusal] = []
        if extra is not None:
            feasible, more = extra.narrow(feasible, nodes)
        count = int(np.count_nonzero(feasible))
        if not count:
            refused = self._refusal(pod, nodes, kept, expected)
            return replace(refused, refusals=(*refused.refusals, *more)) if more else refused
        if first and (at := nodes.at.get(first)) is not None and feasible[at]:
            return Chosen(first, 0, 1)
        ranked = kept.ranked(pod, nodes, feasible)
        points = extra.points(feasible, nodes) if extra is not None else None
        if points is not None:
            ranked = np.where(feasible, ranked + points, _NOT_FEASIBLE)
        [best] = (ranked == ranked.max()).nonzero()
        at = int(best[rng.randrange(len(best))])
        return Chosen(nodes.rows[at].name, int(ranked[at]), count)

    def _will_do(
        self, node: str, pod: PodShape, feasible: BoolArray, expected: NominatedFor
    ) -> bool:
        """Whether the node that was cleared for a pod is free for it now."""
        at = self._columns.snapshot().at.get(node)
        if at is None or not feasible[at]:
            return False
        others = {node: expected[node]} if node in expected else NOBODY
        return bool(with_room_for(others, pod, feasible, self._columns, self._profile)[at])

    def feasible(self, pod: PodShape) -> list[str]:
        """The nodes that the rules of the profile allow."""
        nodes = self._columns.snapshot()
        if refused_beforehand(pod, nodes, self._profile) is not None:
            return []
        feasible = self._kept_for(pod).feasible(pod, nodes)
        return [nodes.rows[at].name for at in np.flatnonzero(feasible).tolist()]

    def _kept_for(self, pod: PodShape) -> "_Kept":
        if pod.is_long:  # its like will not come often, and 64 of them are much to remember
            kept = _Kept(self._columns, self._profile)
            kept.costs = self.costs
            return kept
        key = _local(pod)
        found = self._kept.get(key)
        kept = self._kept[key] = found or _Kept(self._columns, self._profile)
        kept.costs = self.costs
        return kept

    def _refusal(
        self, pod: PodShape, nodes: Snapshot, kept: "_Kept", expected: NominatedFor
    ) -> Refused:
        if expected:
            return refused_with(expected, pod, self._columns, self._profile)
        last = kept.refusal
        if last is not None and last[:2] == (self._columns.generation, pod):
            return last[2]
        _, refusals = filter_nodes(pod, nodes, self._profile)
        refused = Refused(len(nodes), tuple(refusals))
        kept.refusal = (self._columns.generation, pod, refused)
        return refused


def _local(pod: PodShape) -> Hashable:
    """What rules look at that do not look at other pods: labels and namespace are not part of it,
    so that the numbered pods of one set share their masks."""
    return (pod.usage, pod.node_name, pod.selector, pod.required, pod.preferred, pod.tolerations,
            pod.images, pod.features)  # fmt: skip


class _Kept:
    """The masks and points of one shape, as of some position in the log of touched nodes."""

    def __init__(self, columns: Columns, profile: Profile) -> None:
        self._columns, self._profile = columns, profile
        self._structure = -1
        self._position = 0
        self._by_node: BoolArray = np.zeros(0, np.bool_)  # what the rules say that ignore pods
        self._feasible: BoolArray = self._by_node  # and those that look at the pods of the node
        self._points: IntArray = np.zeros(0, np.int64)  # of rules that look at these
        self._node_points: IntArray | None = None  # of rules that ignore pods
        self._ranked: IntArray | None = None  # all together, where nothing else counts
        self._scored_for: BoolArray | None = None  # feasible when the points were given
        self.refusal: tuple[int, PodShape, Refused] | None = None
        self.costs: RuleCosts | None = None

    def feasible(self, pod: PodShape, nodes: Snapshot) -> BoolArray:
        self._catch_up(pod, nodes)
        feasible = self._feasible
        for rule in self._profile.filters:
            if rule.depends is Depends.EVERYTHING:
                allowed = self._mask(rule, pod, nodes)
                if allowed is not None:
                    feasible = feasible & allowed
        return feasible

    def ranked(self, pod: PodShape, nodes: Snapshot, feasible: BoolArray) -> IntArray:
        """The points of the feasible nodes; -1 for the others."""
        more = self._points_by_everything(pod, nodes, feasible)
        local = feasible is self._feasible
        if local and more is None and self._ranked is not None:
            return self._ranked
        if self._scored_for is None or not np.array_equal(self._scored_for, feasible):
            self._node_points = self._score(pod, nodes, feasible, Depends.NODES)
            self._scored_for = feasible.copy()
        total = self._points
        for points in (self._node_points, more):
            if points is not None:
                total = total + points
        ranked = np.where(feasible, total, _NOT_FEASIBLE)
        self._ranked = ranked if local and more is None else None
        return ranked

    def _points_by_everything(
        self, pod: PodShape, nodes: Snapshot, feasible: BoolArray
    ) -> IntArray | None:
        return self._score(pod, nodes, feasible, Depends.EVERYTHING)

    def _catch_up(self, pod: PodShape, nodes: Snapshot) -> None:
        columns = self._columns
        if self._structure == columns.structure:
            rows = columns.touched.since(self._position)
            if rows is not None and len(rows) <= MOST_ROWS:
                for at in rows:
                    self._look_again(pod, nodes, at)
                self._position = columns.touched.position
                return
        self._look_at_all(pod, nodes)
        self._structure, self._position = columns.structure, columns.touched.position

    def _look_at_all(self, pod: PodShape, nodes: Snapshot) -> None:
        self._by_node = self._allowed(pod, nodes, Depends.NODES)
        self._feasible = self._by_node & self._allowed(pod, nodes, Depends.PLACE)
        points = self._score(pod, nodes, self._feasible, Depends.PLACE)
        self._points = np.zeros(len(nodes), np.int64) if points is None else points
        self._ranked = self._scored_for = None

    def _look_again(self, pod: PodShape, nodes: Snapshot, at: int) -> None:
        allowed = bool(self._by_node[at]) and all(
            rule.at(pod, nodes, at) for rule in self._profile.filters if rule.at is not None
        )
        points = sum(
            weight * rule.at(pod, nodes, at)
            for rule, weight in self._profile.scores
            if rule.at is not None
        )
        self._points[at] = points
        if allowed != self._feasible[at]:
            self._feasible[at] = allowed
            self._ranked = None  # points may be relative to the feasible nodes
        elif self._ranked is not None and allowed:
            if self._node_points is not None:
                points += int(self._node_points[at])
            self._ranked[at] = points

    def _allowed(self, pod: PodShape, nodes: Snapshot, depends: Depends) -> BoolArray:
        allowed: BoolArray = np.ones(len(nodes), np.bool_)
        for rule in self._profile.filters:
            if rule.depends is depends:
                mask = self._mask(rule, pod, nodes)
                if mask is not None:
                    allowed &= mask
        return allowed

    def _mask(self, rule: Filter, pod: PodShape, nodes: Snapshot) -> BoolArray | None:
        if self.costs is None:
            return rule.mask(pod, nodes)
        return self.costs.timed((FILTER, rule.name), rule.mask, pod, nodes)

    def _score(
        self, pod: PodShape, nodes: Snapshot, feasible: BoolArray, depends: Depends
    ) -> IntArray | None:
        total: IntArray | None = None
        for rule, weight in self._profile.scores:
            if rule.depends is depends:
                points = (
                    rule.points(pod, nodes, feasible)
                    if self.costs is None
                    else self.costs.timed((SCORE, rule.name), rule.points, pod, nodes, feasible)
                )
                if points is not None:
                    total = weight * points if total is None else total + weight * points
        return total
