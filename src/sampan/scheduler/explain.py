"""Why a pod was not scheduled, in the original's words. Pure.

Job: a Refused decision → the message of the FailedScheduling event and of the pod's condition.
"""

from collections import Counter

from sampan.scheduler.decide import Refused

NO_NODES = "no nodes available to schedule pods"
# What upstream's PostFilter plugins add: dynamic resources first, then preemption.
NO_CLAIMS = "no new claims to deallocate"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_ELIGIBLE = "not eligible due to preemptionPolicy=Never."
NOT_YET = "not supported by this scheduler yet."


def message(refused: Refused, *, may_preempt: bool, lower_priority_pods: bool) -> str:
    if refused.all_nodes == 0:
        return NO_NODES
    start = f"0/{refused.all_nodes} nodes are available:"
    if refused.unsupported:
        return f"{start} {', '.join(refused.unsupported)} not supported by this scheduler yet."
    counts: Counter[str] = Counter()
    for refusal in refused.refusals:
        counts.update(dict(refusal.reasons))
    after = _preemption(refused, may_preempt=may_preempt, lower_priority_pods=lower_priority_pods)
    return f"{start} {_listed(counts)}. {NO_CLAIMS}, preemption: {after}"


def _preemption(refused: Refused, *, may_preempt: bool, lower_priority_pods: bool) -> str:
    if not may_preempt:
        return NOT_ELIGIBLE
    hopeless = sum(refusal.unresolvable for refusal in refused.refusals)
    others = refused.all_nodes - hopeless
    if others and lower_priority_pods:
        return NOT_YET
    counts = Counter({NOT_HELPFUL: hopeless, NO_VICTIMS: others})
    return f"0/{refused.all_nodes} nodes are available: {_listed(counts)}."


def _listed(counts: Counter[str]) -> str:
    """Sorted as text, numbers included, as upstream sorts them."""
    return ", ".join(sorted(f"{count} {text}" for text, count in counts.items() if count))
