"""Why a pod was not scheduled, in the original's words. Pure.

Job: a Refused decision → the message of the FailedScheduling event and of the pod's condition.
"""

from collections import Counter
from collections.abc import Iterable

from sampan.scheduler.decision.decide import Refused
from sampan.scheduler.preemption.victims import NO_VICTIMS, NOT_HELPFUL

NO_NODES = "no nodes available to schedule pods"
# What upstream's PostFilter plugins add: dynamic resources first, then preemption.
NO_CLAIMS = "no new claims to deallocate"
# Where a rule in front of it has refused the pod, upstream's plugin of devices fails with this, and
# preemption is not asked.
NO_STATE = "not found"
CLAIM_DEALLOCATED = "deallocation of ResourceClaim completed"
STILL_NOT = "still not schedulable"


def message(refused: Refused, preemption: str = "", claims: str = NO_CLAIMS) -> str:
    """`preemption`: what became of it; empty where it was not tried, or makes room now; `claims`:
    what became of devices that the pod has elsewhere."""
    if refused.all_nodes == 0:
        return NO_NODES
    start = f"0/{refused.all_nodes} nodes are available:"
    counts: Counter[str] = Counter()
    for refusal in refused.refusals:
        counts.update(dict(refusal.reasons))
    why = f"{start} {refused.beforehand or reasons_text(counts.items())}."
    if refused.is_early:
        return f"{why} {NO_STATE}"
    return f"{why} {claims}, preemption: {preemption}" if preemption else why


def nobody_to_preempt(refused: Refused) -> str:
    """Where no pod anywhere is less important."""
    hopeless = sum(refusal.unresolvable for refusal in refused.refusals)
    if refused.beforehand:
        hopeless = refused.all_nodes
    return not_preempted(
        refused.all_nodes, ((NOT_HELPFUL, hopeless), (NO_VICTIMS, refused.all_nodes - hopeless))
    )


def not_preempted(all_nodes: int, reasons: Iterable[tuple[str, int]]) -> str:
    return f"0/{all_nodes} nodes are available: {reasons_text(reasons)}."


def reasons_text(reasons: Iterable[tuple[str, int]]) -> str:
    """Sorted as text, numbers included, as upstream sorts them."""
    return ", ".join(sorted(f"{count} {text}" for text, count in reasons if count))
