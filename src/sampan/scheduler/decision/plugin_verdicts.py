"""What plugins and extenders say about one pod, beside the rules of the profile.

Job: narrow the feasible nodes and add points; refusals as the rules of the profile give them.
Invariant: only nodes that were feasible before are asked about.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.decision.decide import Refusal
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.scores.rule import MOST_POINTS


class ExtenderFailed(OSError):
    """It did not answer, or not as it should."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An extender's."""

    name: str
    allowed: frozenset[str] | None  # None: it does not filter
    failed: Mapping[str, str]
    unresolvable: frozenset[str]
    points: Mapping[str, int]  # weighted


@dataclass(frozen=True, slots=True)
class Extra:
    pod: Obj
    plugins: Sequence[tuple[Plugin, int]]  # with the weights of their points
    answers: Sequence[Answer] = ()

    def narrow(self, feasible: BoolArray, nodes: Snapshot) -> tuple[BoolArray, list[Refusal]]:
        refusals = []
        for plugin, _ in self.plugins:
            reasons = plugin.filter_all(self.pod, nodes, feasible)
            if reasons:
                feasible = feasible.copy()
                feasible[list(reasons)] = False
                refusals.append(_refusal(plugin.name, list(reasons.values()), 0))
        for answer in self.answers:
            if answer.allowed is not None:
                feasible, refusal = _apply_answer(answer, feasible, nodes)
                refusals += refusal
        return feasible, refusals

    def points(self, feasible: BoolArray, nodes: Snapshot) -> IntArray | None:
        total: IntArray | None = None
        for plugin, weight in self.plugins:
            if not plugin.pre_score(self.pod, nodes, feasible):
                continue
            raw = plugin.score_all(self.pod, nodes, feasible)
            if raw is not None:
                made = np.clip(plugin.normalize(raw, feasible), 0, MOST_POINTS) * weight
                total = made if total is None else total + made
        for answer in self.answers:
            made = np.zeros(len(nodes), np.int64)
            for node, points in answer.points.items():
                at = nodes.at.get(node)
                if at is not None:
                    made[at] = points
            total = made if total is None else total + made
        return total


def _apply_answer(
    answer: Answer, feasible: BoolArray, nodes: Snapshot
) -> tuple[BoolArray, list[Refusal]]:
    assert answer.allowed is not None
    reasons, hopeless = [], 0
    narrowed = feasible.copy()
    for at in np.flatnonzero(feasible).tolist():
        name = nodes.rows[at].name
        if name not in answer.allowed:
            narrowed[at] = False
            reasons.append(answer.failed.get(name) or f"node(s) refused by extender {answer.name}")
            hopeless += name in answer.unresolvable
    return narrowed, [_refusal(answer.name, reasons, hopeless)] if reasons else []


def _refusal(name: str, reasons: list[str], hopeless: int) -> Refusal:
    return Refusal(name, tuple(Counter(reasons).items()), len(reasons), hopeless)
