"""Nominated pods: those that preemption made room for on a node, kept from less important ones.

Job: keep who is nominated where; narrow masks to nodes where a pod would leave them their room.
Invariant: a pod is nominated for at most one node; the columns are as before after each question.
Owner: Nominator belongs to the scheduler's loop.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np

from sampan.core.bounded import Bounded
from sampan.scheduler.cache.columns import Columns
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.decision.decide import Refusal, Refused, filter_nodes
from sampan.scheduler.decision.nominated_room import MOST_PRIORITIES, PODS, Taken
from sampan.scheduler.filters.node_resources_fit import NODE_RESOURCES_FIT, TOO_MANY_PODS
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends
from sampan.scheduler.profile import Profile


class Nominator:
    def __init__(self) -> None:
        self._node: dict[str, str] = {}  # by uid
        self._pods: dict[str, dict[str, AssignedPod]] = {}  # by node, by uid
        self._priorities: Counter[int] = Counter()
        self._with_terms = 0  # how many of them mind other pods
        # By the least priority that counts.
        self._taken: Bounded[int, Taken] = Bounded(MOST_PRIORITIES)

    def put(self, pod: AssignedPod, node: str) -> None:
        self.remove(pod.uid)
        if node:
            self._node[pod.uid] = node
            self._pods.setdefault(node, {})[pod.uid] = pod
            self._count(node, pod, 1)

    def remove(self, uid: str) -> None:
        node = self._node.pop(uid, None)
        if node is not None:
            self._count(node, self._pods[node].pop(uid), -1)
            if not self._pods[node]:
                del self._pods[node]

    def node_of(self, uid: str) -> str:
        return self._node.get(uid, "")

    def on(self, node: str) -> list[AssignedPod]:
        return list(self._pods.get(node, {}).values())

    def nodes(self) -> Iterable[str]:
        return self._pods

    def for_others(self, uid: str, priority: int) -> "NominatedFor":
        """Those that a pod must leave room for: at least as important, and not itself."""
        return NominatedFor(self, uid, priority) if self._node else NOBODY

    def count(self, priority: int) -> int:
        """Of those who are at least so important."""
        return sum(many for item, many in self._priorities.items() if item >= priority)

    @property
    def only_take_room(self) -> bool:
        return not self._with_terms

    def taken(self, priority: int, columns: Columns) -> Taken:
        found = self._taken.get(priority)
        if found is None or found.structure != columns.structure:
            those = (
                (node, pod)
                for node, pods in self._pods.items()
                for pod in pods.values()
                if pod.priority >= priority
            )
            found = self._taken[priority] = Taken(columns, those)
        return found

    def taken_by_others(self, uid: str, priority: int, columns: Columns) -> Mapping[str, IntArray]:
        return NominatedFor(self, uid, priority).taken(columns)

    def _count(self, node: str, pod: AssignedPod, sign: int) -> None:
        self._priorities[pod.priority] += sign
        if not self._priorities[pod.priority]:
            del self._priorities[pod.priority]
        self._with_terms += sign * bool(pod.carried)
        for priority, taken in self._taken.items():
            if pod.priority >= priority:
                taken.add(node, pod, sign)


class NominatedFor(Mapping[str, Sequence[AssignedPod]]):
    """By node, those that one pod must leave room for. Looked up when asked for."""

    def __init__(self, nominator: Nominator, uid: str, priority: int) -> None:
        self._nominator, self._uid, self._priority = nominator, uid, priority
        self._node = nominator.node_of(uid)

    def __getitem__(self, node: str) -> Sequence[AssignedPod]:
        those = [item for item in self._nominator.on(node) if self._counts(item)]
        if not those:
            raise KeyError(node)
        return those

    def __iter__(self) -> Iterator[str]:
        return (node for node in self._nominator.nodes() if node in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return self._nominator.count(self._priority) > (self._own() is not None)

    def room(self, columns: Columns) -> Mapping[str, IntArray] | None:
        """What they take of each resource, by node; None where they mind more than room."""
        return self.taken(columns) if self._nominator.only_take_room else None

    def taken(self, columns: Columns) -> Mapping[str, IntArray]:
        taken = self._nominator.taken(self._priority, columns)
        own = self._own()
        return taken.amounts if own is None else taken.without(self._node, own)

    def _own(self) -> AssignedPod | None:
        """The pod itself, where it would count were it another."""
        for item in self._nominator.on(self._node) if self._node else ():
            if item.uid == self._uid and item.priority >= self._priority:
                return item
        return None

    def _counts(self, one: AssignedPod) -> bool:
        return one.priority >= self._priority and one.uid != self._uid


NOBODY = NominatedFor(Nominator(), "", 0)


def with_room_for(
    expected: Mapping[str, Sequence[AssignedPod]],
    pod: PodShape,
    feasible: BoolArray,
    columns: Columns,
    profile: Profile,
) -> BoolArray:
    """As upstream, a node must do both with and without the pods that are nominated for it."""
    if (room := _room_that_counts(expected, pod, columns, profile)) is not None:
        return feasible & _lacking(pod, columns.snapshot(), room)[0]
    narrowed = feasible
    at_of = columns.snapshot().at
    for node, pods in expected.items():
        at = at_of.get(node)
        if at is None or not feasible[at]:
            continue
        with with_pods(columns, node, pods):
            if not allows(pod, columns, profile, at):
                if narrowed is feasible:
                    narrowed = feasible.copy()
                narrowed[at] = False
    return narrowed


def only_room_matters(pod: PodShape, nodes: Snapshot, profile: Profile) -> bool:
    """Whether no rule but the one of resources can refuse the pod for what others do."""
    if pod.usage.ports or NODE_RESOURCES_FIT not in profile.filters:
        return False
    return all(
        rule.mask(pod, nodes) is None
        for rule in profile.filters
        if rule.depends is Depends.EVERYTHING
    )


def _room_that_counts(
    expected: Mapping[str, Sequence[AssignedPod]], pod: PodShape, columns: Columns, profile: Profile
) -> Mapping[str, IntArray] | None:
    """All at once, where nothing but room matters."""
    if not isinstance(expected, NominatedFor):
        return None
    if not only_room_matters(pod, columns.snapshot(), profile):
        return None
    return expected.room(columns)


def _lacking(
    pod: PodShape, nodes: Snapshot, room: Mapping[str, IntArray]
) -> tuple[BoolArray, dict[str, BoolArray]]:
    """Where the pod fits beside the nominated pods; by reason, where it does not."""
    nobody = np.zeros(len(nodes), np.int64)
    full = nodes.pods + room.get(PODS, nobody) >= nodes.allowed_pods
    reasons = {TOO_MANY_PODS: full}
    for name, amount in pod.usage.requests:
        has = nodes.allocatable.get(name, nobody)
        taken = nodes.requested.get(name, nobody) + room.get(name, nobody)
        reasons[f"Insufficient {name}"] = taken + amount > has
    fits: BoolArray = ~np.logical_or.reduce(list(reasons.values()))
    return fits, reasons


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


def refused_with(
    expected: NominatedFor, pod: PodShape, columns: Columns, profile: Profile
) -> Refused:
    """Why all nodes are refused; those that only lack room for others count by what these take."""
    nodes = columns.snapshot()
    feasible, refusals = filter_nodes(pod, nodes, profile)
    if (room := _room_that_counts(expected, pod, columns, profile)) is not None:
        fits, reasons = _lacking(pod, nodes, room)
        short = feasible & ~fits
        counts = {text: int((short & there).sum()) for text, there in reasons.items()}
        more = Refusal(
            NODE_RESOURCES_FIT.name,
            tuple((text, count) for text, count in counts.items() if count),
            int(short.sum()),
            0,
        )
        return Refused(len(nodes), _merge([*refusals, more] if more.nodes else refusals))
    return _refused_one_by_one(expected, pod, columns, profile, feasible, refusals)


def _refused_one_by_one(
    expected: NominatedFor,
    pod: PodShape,
    columns: Columns,
    profile: Profile,
    feasible: BoolArray,
    refusals: Sequence[Refusal],
) -> Refused:
    nodes = columns.snapshot()
    found = list(refusals)
    short = [node for node in expected if node in nodes.at and feasible[nodes.at[node]]]
    with ExitStack() as everywhere:
        for node in short:
            everywhere.enter_context(with_pods(columns, node, expected[node]))
        left, now = filter_nodes(pod, columns.snapshot(), profile, among=feasible)
    if not left.any():
        return Refused(len(nodes), _merge([*found, *now]))
    # Pods that are nominated elsewhere would be of help: each node by itself.
    for node in short:
        alone = np.zeros(len(nodes), np.bool_)
        alone[nodes.at[node]] = True
        with with_pods(columns, node, expected[node]):
            found += filter_nodes(pod, columns.snapshot(), profile, among=alone)[1]
    return Refused(len(nodes), _merge(found))


@contextmanager
def with_pods(columns: Columns, node: str, pods: Sequence[AssignedPod]) -> Iterator[None]:
    before = columns.touched.position
    for pod in pods:
        columns.add(node, pod)
    try:
        yield
    finally:
        for pod in pods:
            columns.subtract(node, pod)
        columns.touched.forget_since(before)


@contextmanager
def without_pods(columns: Columns, node: str, pods: Sequence[AssignedPod]) -> Iterator[None]:
    before = columns.touched.position
    for pod in pods:
        columns.subtract(node, pod)
    try:
        yield
    finally:
        for pod in pods:
            columns.add(node, pod)
        columns.touched.forget_since(before)


def _merge(refusals: Sequence[Refusal]) -> tuple[Refusal, ...]:
    by_rule: dict[str, Refusal] = {}
    for refusal in refusals:
        before = by_rule.get(refusal.rule)
        if before is None:
            by_rule[refusal.rule] = refusal
            continue
        counts = dict(before.reasons)
        for text, count in refusal.reasons:
            counts[text] = counts.get(text, 0) + count
        by_rule[refusal.rule] = Refusal(
            refusal.rule,
            tuple(counts.items()),
            before.nodes + refusal.nodes,
            before.unresolvable + refusal.unresolvable,
        )
    return tuple(by_rule.values())
