"""Where a pod goes, or why it can go nowhere. Pure.

Job: one pod and one snapshot → a Decision, which is a value.
Invariant: a chosen node passed every filter, and no feasible node has more points.
Invariant: every node of the snapshot is either feasible or refused by exactly one filter.
"""

import random

import numpy as np

from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray, any_set
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.profile import Profile


@dataclass(frozen=True, slots=True)
class Chosen:
    node: str
    points: int
    feasible: int  # among how many


@dataclass(frozen=True, slots=True)
class Refusal:
    """What one filter refused of the nodes that those before it had let pass."""

    rule: str
    reasons: tuple[tuple[str, int], ...]  # text, nodes (a node may count for several)
    nodes: int
    unresolvable: int  # of these, where removing pods could not help


@dataclass(frozen=True, slots=True)
class Refused:
    all_nodes: int
    refusals: tuple[Refusal, ...]
    # Set where one rule refused the pod before any node was looked at: its words, and its name.
    beforehand: str = ""
    beforehand_rule: str = ""
    is_early: bool = False  # by a rule in front of DynamicResources

    @property
    def rules(self) -> frozenset[str]:
        if self.beforehand:
            return frozenset({self.beforehand_rule})
        return frozenset(refusal.rule for refusal in self.refusals)


Decision = Chosen | Refused
_LAST_RULES = frozenset({"DynamicResources", "NodeDeclaredFeatures"})


def decide(pod: PodShape, nodes: Snapshot, profile: Profile, rng: random.Random) -> Decision:
    if (early := refused_beforehand(pod, nodes, profile)) is not None:
        return early
    feasible, refusals = filter_nodes(pod, nodes, profile)
    count = int(feasible.sum())
    if count == 0:
        return Refused(len(nodes), tuple(refusals))
    points = score_nodes(pod, nodes, profile, feasible)
    at = pick_node(points, feasible, rng)
    return Chosen(nodes.rows[at].name, int(points[at]), count)


def refused_beforehand(pod: PodShape, nodes: Snapshot, profile: Profile) -> Refused | None:
    if len(nodes):
        for rule in profile.filters:
            why = rule.beforehand(pod, nodes) if rule.beforehand is not None else None
            if why is not None:
                early = rule.name not in _LAST_RULES
                return Refused(
                    len(nodes), (), beforehand=why, beforehand_rule=rule.name, is_early=early
                )
    return None


def filter_nodes(
    pod: PodShape, nodes: Snapshot, profile: Profile, among: BoolArray | None = None
) -> tuple[BoolArray, list[Refusal]]:
    """Of all nodes, or of some only, those that pass, and why the others do not."""
    feasible: BoolArray = np.ones(len(nodes), np.bool_) if among is None else among.copy()
    refusals = []
    for rule in profile.filters:
        named = rule.named(pod, nodes) if rule.named is not None else None
        if named is not None and any_set(others := feasible & ~named):
            feasible &= named
            count = int(others.sum())
            why = f"node(s) didn't satisfy plugin(s) [{rule.name}]"
            refusals.append(Refusal(rule.name, ((why, count),), count, count))
    for rule in profile.filters:
        allowed = rule.mask(pod, nodes)
        if allowed is None:
            continue
        refused = feasible & ~allowed
        if not any_set(refused):
            continue
        feasible &= allowed
        reasons = rule.reasons(pod, nodes, refused)
        hopeless = rule.unresolvable(pod, nodes, refused)
        refusals.append(
            Refusal(rule.name, tuple(reasons.items()), int(refused.sum()), int(hopeless.sum()))
        )
    return feasible, refusals


def hopeful(pod: PodShape, nodes: Snapshot, profile: Profile) -> BoolArray:
    """Where the pod could go if others were removed, as far as the rules can tell."""
    feasible: BoolArray = np.ones(len(nodes), np.bool_)
    hopeful = feasible.copy()
    for rule in profile.filters:
        allowed = rule.mask(pod, nodes)
        if allowed is not None:
            refused = feasible & ~allowed
            feasible &= allowed
            hopeful &= ~rule.unresolvable(pod, nodes, refused)
    return hopeful


def score_nodes(pod: PodShape, nodes: Snapshot, profile: Profile, feasible: BoolArray) -> IntArray:
    total = np.zeros(len(nodes), np.int64)
    for rule, weight in profile.scores:
        points = rule.points(pod, nodes, feasible)
        if points is not None:
            total += weight * points
    return total


def pick_node(points: IntArray, feasible: BoolArray, rng: random.Random) -> int:
    """The feasible node with the most points; at random among equals."""
    best = np.flatnonzero(feasible & (points == points[feasible].max()))
    return int(best[rng.randrange(len(best))])
