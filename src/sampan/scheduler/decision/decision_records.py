"""What was decided about which pod, and why: kept for a while, for `sampan why`.

Job: a decision → a compact record; the newest of each pod, the oldest pods forgotten.
Invariant: memory is bounded: so many records, and in each at most so many nodes by name.
Owner: the scheduler's loop.
"""

from collections.abc import Mapping

import numpy as np

from sampan.api.objects import Obj, time_text
from sampan.core.bounded import Recent
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.decision.decide import Chosen, Decision, Refused
from sampan.scheduler.model.pod_info import PodInfo
from sampan.scheduler.profile import Profile

MOST_RECORDS = 2000
BEST = 10
MOST_NAMED = 100  # nodes by name for each rule that refused some


@dataclass(frozen=True, slots=True)
class Record:
    when: float
    pod: PodInfo
    decision: Decision
    # Rule → the nodes that it refused; a rule with more than MOST_NAMED ends with "…".
    refused: Mapping[str, tuple[str, ...]]
    # Node, points, points by rule: the best ones.
    best: tuple[tuple[str, int, Mapping[str, int]], ...]
    said: str = ""


class Records:
    def __init__(self) -> None:
        self._records: Recent[str, Record] = Recent(MOST_RECORDS)  # by namespace/name

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: Record) -> None:
        self._records[record.pod.key] = record

    def get(self, key: str) -> Record | None:
        return self._records.get(key)


def refusing(pod: PodInfo, nodes: Snapshot, profile: Profile) -> dict[str, tuple[str, ...]]:
    """For each node the first rule that refuses it, as rule → nodes."""
    left = np.ones(len(nodes), np.bool_)
    found = {}
    for rule in profile.filters:
        allowed = rule.mask(pod.shape, nodes)
        if allowed is None:
            continue
        refused = np.flatnonzero(left & ~allowed)
        left &= allowed
        if len(refused):
            names = tuple(nodes.rows[at].name for at in refused[:MOST_NAMED].tolist())
            found[rule.name] = (*names, "…") if len(refused) > MOST_NAMED else names
    return found


def best_of(
    pod: PodInfo, nodes: Snapshot, profile: Profile
) -> tuple[tuple[str, int, Mapping[str, int]], ...]:
    feasible = np.ones(len(nodes), np.bool_)
    for rule in profile.filters:
        allowed = rule.mask(pod.shape, nodes)
        if allowed is not None:
            feasible &= allowed
    if not feasible.any():
        return ()
    total = np.zeros(len(nodes), np.int64)
    by_rule = {}
    for score, weight in profile.scores:
        points = score.points(pod.shape, nodes, feasible)
        if points is not None:
            by_rule[score.name] = weight * points
            total += by_rule[score.name]
    rows = np.flatnonzero(feasible)
    top = rows[np.argsort(-total[rows], kind="stable")][:BEST].tolist()
    return tuple(
        (
            nodes.rows[at].name,
            int(total[at]),
            {name: int(points[at]) for name, points in by_rule.items()},
        )
        for at in top
    )


def record_object(record: Record) -> Obj:
    """As JSON, for the client."""
    made: Obj = {
        "pod": record.pod.key,
        "uid": record.pod.uid,
        "when": time_text(record.when),
        "refused": {rule: list(nodes) for rule, nodes in record.refused.items()},
        "best": [
            {"node": node, "points": points, "byRule": dict(rules)}
            for node, points, rules in record.best
        ],
    }
    match record.decision:
        case Chosen(node, points, feasible):
            made["chosen"] = {"node": node, "points": points, "feasibleNodes": feasible}
        case Refused(all_nodes):
            made["message"] = record.said
            made["nodes"] = all_nodes
            made["reasons"] = {
                refusal.rule: dict(refusal.reasons) for refusal in record.decision.refusals
            }
    return made
