"""Pods that are expected on a node: room was made for them, and nobody less important may take it.

Job: keep who is expected where; narrow a mask to the nodes where a pod would leave them their room.
Invariant: a pod is expected on at most one node; the columns are as before after each question.
Owner: Nominations belongs to the scheduler's loop.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np

from sampan.scheduler.columns import Columns
from sampan.scheduler.decide import Refusal, Refused, filtered
from sampan.scheduler.depends import Depends
from sampan.scheduler.profile import Profile
from sampan.scheduler.resident import Resident
from sampan.scheduler.rows import PodShape
from sampan.scheduler.snapshot import BoolArray

Expected = Mapping[str, Sequence[Resident]]  # by node
NOBODY: Expected = {}


class Nominations:
    def __init__(self) -> None:
        self._node: dict[str, str] = {}  # by uid
        self._pods: dict[str, dict[str, Resident]] = {}  # by node, by uid

    def put(self, pod: Resident, node: str) -> None:
        self.remove(pod.uid)
        if node:
            self._node[pod.uid] = node
            self._pods.setdefault(node, {})[pod.uid] = pod

    def remove(self, uid: str) -> None:
        node = self._node.pop(uid, None)
        if node is not None:
            del self._pods[node][uid]
            if not self._pods[node]:
                del self._pods[node]

    def node_of(self, uid: str) -> str:
        return self._node.get(uid, "")

    def on(self, node: str) -> list[Resident]:
        return list(self._pods.get(node, {}).values())

    def for_others(self, uid: str, priority: int) -> Expected:
        """Those that a pod must leave room for: at least as important, and not itself."""
        if not self._node:
            return NOBODY
        found = {}
        for node, pods in self._pods.items():
            those = [one for one in pods.values() if one.priority >= priority and one.uid != uid]
            if those:
                found[node] = those
        return found


def with_room_for(
    expected: Expected, pod: PodShape, feasible: BoolArray, columns: Columns, profile: Profile
) -> BoolArray:
    """As upstream, a node must do both with and without those who are expected on it."""
    narrowed = feasible
    at_of = columns.snapshot().at
    for node, pods in expected.items():
        at = at_of.get(node)
        if at is None or not feasible[at]:
            continue
        with added(columns, node, pods):
            if not allows(pod, columns, profile, at):
                if narrowed is feasible:
                    narrowed = feasible.copy()
                narrowed[at] = False
    return narrowed


def allows(pod: PodShape, columns: Columns, profile: Profile, at: int) -> bool:
    """Whether the rules that look at pods let one node pass."""
    nodes = columns.snapshot()
    for rule in profile.filters:
        if rule.at is not None:
            if not rule.at(pod, nodes, at):
                return False
        elif rule.depends is Depends.EVERYTHING:
            allowed = rule.mask(pod, nodes)
            if allowed is not None and not allowed[at]:
                return False
    return True


def refused_with(expected: Expected, pod: PodShape, columns: Columns, profile: Profile) -> Refused:
    """Why all nodes are refused; those that only lack room for others count by what these take."""
    nodes = columns.snapshot()
    feasible, refusals = filtered(pod, nodes, profile)
    found = list(refusals)
    short = [node for node in expected if node in nodes.at and feasible[nodes.at[node]]]
    with ExitStack() as everywhere:
        for node in short:
            everywhere.enter_context(added(columns, node, expected[node]))
        left, now = filtered(pod, columns.snapshot(), profile, among=feasible)
    if not left.any():
        return Refused(len(nodes), _merged([*found, *now]))
    # Those who are expected elsewhere would be of help: each node by itself.
    for node in short:
        alone = np.zeros(len(nodes), np.bool_)
        alone[nodes.at[node]] = True
        with added(columns, node, expected[node]):
            found += filtered(pod, columns.snapshot(), profile, among=alone)[1]
    return Refused(len(nodes), _merged(found))


@contextmanager
def added(columns: Columns, node: str, pods: Sequence[Resident]) -> Iterator[None]:
    before = columns.touched.position
    for one in pods:
        columns.add(node, one)
    try:
        yield
    finally:
        for one in pods:
            columns.subtract(node, one)
        columns.touched.forget_since(before)


@contextmanager
def removed(columns: Columns, node: str, pods: Sequence[Resident]) -> Iterator[None]:
    before = columns.touched.position
    for one in pods:
        columns.subtract(node, one)
    try:
        yield
    finally:
        for one in pods:
            columns.add(node, one)
        columns.touched.forget_since(before)


def _merged(refusals: Sequence[Refusal]) -> tuple[Refusal, ...]:
    by_rule: dict[str, Refusal] = {}
    for one in refusals:
        before = by_rule.get(one.rule)
        if before is None:
            by_rule[one.rule] = one
            continue
        counts = dict(before.reasons)
        for text, count in one.reasons:
            counts[text] = counts.get(text, 0) + count
        by_rule[one.rule] = Refusal(
            one.rule,
            tuple(counts.items()),
            before.nodes + one.nodes,
            before.unresolvable + one.unresolvable,
        )
    return tuple(by_rule.values())
