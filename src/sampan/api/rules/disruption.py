"""Disruption budgets: whether one lets a pod go, and what that takes from it. Pure.

Job: what the eviction subresource asks of a PodDisruptionBudget; its DisruptionAllowed condition.
Invariant: a budget whose controller has not seen its newest spec, or that allows nothing, is never
    charged.
"""

from sampan.api.errors import ApiError, TooManyRequests, forbidden
from sampan.api.objects import Obj, is_deleted, meta_of, name_of, time_text
from sampan.api.rules import pods
from sampan.api.rules.conditions import condition_of, with_condition

MOST_DISRUPTED = 2000  # as MaxDisruptedPodSize: evictions that the controller has not seen yet
RETRY_SECONDS = 10
ALLOWED = "DisruptionAllowed"
NO_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


def allowed_condition(allowed: int, generation: int) -> Obj:
    return {
        "type": ALLOWED,
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
    }


def is_guarded(pod: Obj) -> bool:
    """As canIgnorePDB says not: pods that do not run any more, or not yet, disturb nobody."""
    return not (pods.is_terminal(pod) or pods.phase(pod) == "Pending" or is_deleted(pod))


def may_become_ready(pod: Obj) -> bool:
    """As shouldEnforceResourceVersion: it may come to be guarded while it is being evicted."""
    return not (pods.is_terminal(pod) or is_deleted(pod))


def is_charged(pod: Obj, budget: Obj) -> bool:
    """Whether the pod's eviction takes from the budget. One that is not ready is no part of what
    the budget guards; by default it may go while the others are enough."""
    if pods.is_ready(pod):
        return True
    status, spec = budget.get("status") or {}, budget.get("spec") or {}
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return False
    desired = int(status.get("desiredHealthy") or 0)
    return not (desired > 0 and int(status.get("currentHealthy") or 0) >= desired)


def charged_status(budget: Obj, pod_name: str, now: float) -> Obj:
    """The budget's status after one more eviction. Raises TooManyRequests, Forbidden."""
    status: Obj = budget.get("status") or {}
    if int(status.get("observedGeneration") or 0) < int(meta_of(budget).get("generation") or 0):
        raise still_processed(name_of(budget))
    allowed, disrupted = int(status.get("disruptionsAllowed") or 0), status.get("disruptedPods")
    if allowed < 0:
        raise _forbidden(budget, "pdb disruptions allowed is negative")
    if len(disrupted or ()) > MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _forbidden(budget, why)
    if allowed == 0:
        raise TooManyRequests(NO_BUDGET, details=_cause(_why_not(budget, status)))
    left = allowed - 1
    charged = {
        **status,
        "disruptionsAllowed": left,
        "disruptedPods": {**(disrupted or {}), pod_name: time_text(now)},
    }
    if not left:
        condition = allowed_condition(left, int(status.get("observedGeneration") or 0))
        charged["conditions"] = with_condition(status.get("conditions") or (), condition, now)
    return charged


def still_processed(budget_name: str) -> TooManyRequests:
    why = f"The disruption budget {budget_name} is still being processed by the server."
    return TooManyRequests(NO_BUDGET, details=_cause(why), retry_after_seconds=RETRY_SECONDS)


def _why_not(budget: Obj, status: Obj) -> str:
    start = f"The disruption budget {name_of(budget)}"
    refused = condition_of(budget, ALLOWED) or {}
    why = refused.get("message") if refused.get("status") == "False" else ""
    # First of all: the counts of a budget that failed to sync are not to be trusted.
    if why and refused.get("reason") == "SyncFailed":
        return f"{start} does not allow evicting pods currently because it failed sync: {why}"
    current = int(status.get("currentHealthy") or 0)
    desired = int(status.get("desiredHealthy") or 0)
    if current <= desired:
        return f"{start} needs {desired} healthy pods and has {current} currently"
    if why:
        return f"{start} does not allow evicting pods currently ({refused.get('reason')}): {why}"
    return f"{start} does not allow evicting pods currently"


def _cause(message: str) -> Obj:
    return {"causes": [{"reason": "DisruptionBudget", "message": message}]}


def _forbidden(budget: Obj, why: str) -> ApiError:
    return forbidden("poddisruptionbudget", "policy", name_of(budget), why)
