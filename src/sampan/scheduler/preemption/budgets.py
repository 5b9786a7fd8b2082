"""PodDisruptionBudgets, as far as preemption minds them. Pure.

Job: PodDisruptionBudget → Budget; which pods of a list would go beyond their budgets.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, namespace_of
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.pod_terms import Selector, selector_of, selects


@dataclass(frozen=True, slots=True)
class Budget:
    namespace: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str]  # names of pods that were counted already

    def covers(self, pod: AssignedPod) -> bool:
        # As upstream's preemption: a budget without a selector, or with an empty one, covers none.
        return (
            bool(self.selector)
            and pod.namespace == self.namespace
            and bool(pod.labels)
            and selects(self.selector, dict(pod.labels))
            and pod.name not in self.disrupted
        )


def budget_of(written: Obj) -> Budget:
    status = written.get("status") or {}
    return Budget(
        namespace_of(written),
        selector_of((written.get("spec") or {}).get("selector")),
        int(status.get("disruptionsAllowed") or 0),
        frozenset(status.get("disruptedPods") or ()),
    )


def violating(pods: Sequence[AssignedPod], budgets: Sequence[Budget]) -> list[bool]:
    """For each pod, in the order in which they would be spared: whether a budget is used up."""
    left = [item.allowed for item in budgets]
    found = []
    for pod in pods:
        beyond = False
        for number, budget in enumerate(budgets):
            if budget.covers(pod):
                left[number] -= 1
                beyond = beyond or left[number] < 0
        found.append(beyond)
    return found
