"""Victims of a preemption: which pods of a node. Pure, but for questions put to the columns.

Job: a refused pod → the node to clear and the pods to remove from it, or why that would not help.
Invariant: the victims are less important than the pod; without them it fits, and none of them
    could be spared (in the order of their importance, those beyond a budget first).
Invariant: the node is the one that upstream's order of preferences names; ties at random.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.decision.decide import filter_nodes, hopeful
from sampan.scheduler.decision.nominated_pods import (
    Nominator,
    allows,
    only_room_matters,
    with_pods,
    without_pods,
)
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.pod_info import PodInfo
from sampan.scheduler.preemption.budgets import Budget, violating
from sampan.scheduler.preemption.victim_columns import victims_by_room
from sampan.scheduler.profile import Profile

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "not eligible due to preemptionPolicy=Never."
WAITING = "not eligible due to a terminating pod on the nominated node."

# As the defaults of DefaultPreemptionArgs: of how many nodes each is asked pod by pod.
LEAST_CANDIDATES, CANDIDATES_PERCENT = 100, 10


@dataclass(frozen=True, slots=True)
class Candidate:
    node: str
    victims: tuple[AssignedPod, ...]  # the most important first
    violations: int  # victims beyond their budgets


@dataclass(frozen=True, slots=True)
class Hopeless:
    """No node can be cleared: for each reason, on how many nodes."""

    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Preemptor:
    """What the question is asked with."""

    cache: CacheState
    profile: Profile
    budgets: Sequence[Budget]
    nominator: Nominator


def not_eligible(pod: PodInfo, nominator: Nominator, cache: CacheState) -> str:
    """Why the pod may not preempt now; empty where it may."""
    if not pod.may_preempt:
        return NEVER
    node = nominator.node_of(pod.uid)
    if any(item.preempted and item.priority < pod.priority for item in cache.on(node)):
        return WAITING
    return ""


def preempt(pod: PodInfo, asked: Preemptor, rng: random.Random) -> Candidate | Hopeless:
    columns = asked.cache.columns
    may_help = hopeful(pod.shape, columns.snapshot(), asked.profile)
    if only_room_matters(pod.shape, columns.snapshot(), asked.profile):
        found = victims_by_room(pod, columns, may_help, asked.budgets, asked.nominator, rng)
        if found is not None:
            node, victims, violations = found
            return Candidate(node, victims, violations)
        return Hopeless(_reasons(pod, asked, may_help))
    found_there = candidates(pod, asked, rng)
    if found_there:
        return best(found_there, rng)
    return Hopeless(_reasons(pod, asked, may_help))


def candidates(pod: PodInfo, asked: Preemptor, rng: random.Random) -> list[Candidate]:
    """Node by node, as upstream: from a random one on, until there are enough."""
    nodes = asked.cache.columns.snapshot()
    rows = np.flatnonzero(hopeful(pod.shape, nodes, asked.profile)).tolist()
    if not rows:
        return []
    enough = max(LEAST_CANDIDATES, len(rows) * CANDIDATES_PERCENT // 100)
    start = rng.randrange(len(rows))
    found: list[Candidate] = []
    for at in (*rows[start:], *rows[:start]):
        one = victims_on(at, pod, asked)
        if one is not None:
            found.append(one)
            if len(found) >= enough:
                break
    return found


def victims_on(at: int, pod: PodInfo, asked: Preemptor) -> Candidate | None:
    node = asked.cache.columns.snapshot().rows[at].name
    lower = by_importance(item for item in asked.cache.on(node) if item.priority < pod.priority)
    if not lower:
        return None
    columns = asked.cache.columns
    beyond = violating(lower, asked.budgets)
    spared: set[str] = set()
    victims: list[AssignedPod] = []
    violations = 0
    with without_pods(columns, node, lower):
        if not _fits(at, pod, asked):
            return None
        in_order = sorted(zip(lower, beyond, strict=True), key=lambda item: not item[1])
        for item, is_beyond in in_order:
            columns.add(node, item)
            if _fits(at, pod, asked):
                spared.add(item.uid)
                continue
            columns.subtract(node, item)
            victims.append(item)
            violations += is_beyond
        for item in lower:
            if item.uid in spared:
                columns.subtract(node, item)
    return Candidate(node, tuple(by_importance(victims)), violations) if victims else None


def by_importance(pods: Iterable[AssignedPod]) -> list[AssignedPod]:
    return sorted(pods, key=lambda pod: (-pod.priority, pod.started))


def narrow(
    those: Sequence[Candidate], chosen: Iterable[tuple[str, frozenset[str], int]]
) -> list[Candidate]:
    """What an extender leaves of the candidates: nodes, victims by uid, broken budgets."""
    by_node = {item.node: item for item in those}
    return [
        Candidate(
            node,
            tuple(victim for victim in by_node[node].victims if victim.uid in uids),
            violations,
        )
        for node, uids, violations in chosen
    ]


def best(those: Sequence[Candidate], rng: random.Random) -> Candidate:
    """As upstream's pickOneNodeForPreemption."""
    ranked = [(_preference(item), item) for item in those]
    top = min(preference for preference, _ in ranked)
    equals = [item for preference, item in ranked if preference == top]
    return equals[rng.randrange(len(equals))]


def _preference(one: Candidate) -> tuple[float, ...]:
    highest = max(victim.priority for victim in one.victims)
    # Priorities may be negative: with the offset, fewer victims are still the smaller sum.
    total = sum(victim.priority + 2**31 for victim in one.victims)
    earliest = min(victim.started for victim in one.victims if victim.priority == highest)
    return (one.violations, highest, total, len(one.victims), -earliest)


def _fits(at: int, pod: PodInfo, asked: Preemptor) -> bool:
    """With and without those who are expected there."""
    columns, profile = asked.cache.columns, asked.profile
    if not allows(pod.shape, columns, profile, at):
        return False
    node = columns.snapshot().rows[at].name
    expected = [
        item
        for item in asked.nominator.on(node)
        if item.priority >= pod.priority and item.uid != pod.uid
    ]
    if not expected:
        return True
    with with_pods(columns, node, expected):
        return allows(pod.shape, columns, profile, at)


def _reasons(pod: PodInfo, asked: Preemptor, may_help: BoolArray) -> tuple[tuple[str, int], ...]:
    """Counted over all nodes: what removing every less important pod would leave undone."""
    columns = asked.cache.columns
    nodes = columns.snapshot()
    counts = Counter({NOT_HELPFUL: len(nodes) - int(np.count_nonzero(may_help))})
    table = columns.table
    there = table.node[(table.node >= 0) & (table.priority < pod.priority)]
    with_lower: BoolArray = np.zeros(len(nodes), np.bool_)
    with_lower[there] = True
    counts[NO_VICTIMS] = int(np.count_nonzero(may_help & ~with_lower))
    for at in np.flatnonzero(may_help & with_lower).tolist()[:LEAST_CANDIDATES]:
        node = nodes.rows[at].name
        lower = [item for item in asked.cache.on(node) if item.priority < pod.priority]
        alone: BoolArray = np.zeros(len(nodes), np.bool_)
        alone[at] = True
        with without_pods(columns, node, lower):
            _, refusals = filter_nodes(pod.shape, columns.snapshot(), asked.profile, alone)
        for refusal in refusals:
            counts.update(dict(refusal.reasons))
    return tuple((text, count) for text, count in counts.items() if count)
