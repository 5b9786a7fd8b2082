"""PodDisruptionBudgets: how many pods of a kind may be taken away right now.

Job: count the healthy pods that a budget covers and say how many of them are to spare.
Invariant: what is allowed never exceeds healthy minus desired; where the expected number cannot be
    known, nothing is allowed.
"""

from collections.abc import Iterable, Sequence

from sampan.api.errors import ApiError
from sampan.api.go_text import go_label_selector
from sampan.api.objects import (
    Obj,
    controller_of,
    is_deleted,
    key_of,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    seconds_of,
    time_text,
    uid_of,
)
from sampan.api.resources import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
    by_kind,
)
from sampan.api.rules import aspects
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import looks_at
from sampan.api.rules.conditions import condition_of, with_condition
from sampan.api.rules.disruption import allowed_condition
from sampan.api.rules.selectors import LabelSelector
from sampan.client.events import reference as reference_to
from sampan.client.indexer import by_namespace
from sampan.client.label_index import (
    LABELS,
    SELECTOR,
    by_labels,
    by_selector,
    may_select,
    parsed,
    selected,
)
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Patch,
    Plan,
    Record,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, View, Wake, own_key
from sampan.controllers.scale_targets import NoScale, scale_of, scaled_resource
from sampan.controllers.workloads.rollout import replicas_of, scaled_value
from sampan.core.fast_dataclass import dataclass

DISRUPTED_SECONDS = 120.0  # how long an evicted pod may take until its deletion is seen
STALE_SECONDS = 120.0  # how long a pod may be marked for disruption without being deleted
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a "
    "result, the status of the PDB cannot be calculated correctly, which may result in undefined "
    'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
    "integer value."
)
_SCALED: tuple[Resource, ...] = (
    REPLICA_SETS,
    DEPLOYMENTS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)


@dataclass(frozen=True, slots=True)
class Stale:
    """Key of a pod that is marked for disruption (budgets have plain keys)."""

    pod: str


@dataclass(frozen=True, slots=True)
class Contested:
    """Key of a pod that several budgets select."""

    pod: str


@dataclass(frozen=True, slots=True)
class Situation:
    budget: Obj
    pods: Sequence[Obj]  # those that it selects
    # How many there should be, by the controllers of these pods; a text says why nobody knows.
    scale: int | str = 0
    unmanaged: bool = False  # some have no controller


def disruption_controller() -> Controller:
    wakes: dict[Resource, Wake] = {POD_DISRUPTION_BUDGETS: own_key, PODS: _budgets_of_pod}
    wakes |= dict.fromkeys(_SCALED, _budgets_of_namespace)
    return Controller(
        name="disruption-controller",
        component="controllermanager",
        aliases=("disruption",),
        wakes=wakes,
        planned=_plan_key,
        indices={
            POD_DISRUPTION_BUDGETS: {"namespace": by_namespace, SELECTOR: by_selector},
            PODS: {LABELS: by_labels},
        },
        workers=1,
    )


def plan(situation: Situation, now: float) -> Plan:
    budget, about = situation.budget, reference_to(situation.budget)
    counted = _expected_pods(situation)
    events: list[Action] = []
    if not situation.pods:
        events.append(Record(about, "Normal", "NoPods", "No matching pods found"))
    if isinstance(counted, str):
        return _failure(budget, counted, now)
    disrupted, again = _disrupted_pods(budget, situation.pods, now)
    if situation.unmanaged:
        message = _UNMANAGED.format(go_label_selector((budget.get("spec") or {}).get("selector")))
        events.append(Record(about, "Warning", "UnmanagedPods", message))
    expected, desired = counted
    healthy = sum(
        pod_facts.is_ready(pod) and not is_deleted(pod) and name_of(pod) not in disrupted
        for pod in situation.pods
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    condition = allowed_condition(allowed, meta_of(budget).get("generation", 0))
    status = _status(budget, condition, disrupted, now)
    status |= {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    }
    patch = status_patch(POD_DISRUPTION_BUDGETS, budget, status)
    actions: list[Action] = [patch] if patch is not None else []
    return Plan([*actions, *events], again_seconds=again)


def plan_contested(pod: Obj, budgets: Sequence[Obj]) -> Plan:
    if len(budgets) < 2:
        return NOTHING
    chosen = min(map(name_of, budgets))
    named = f'"{namespace_of(pod)}"/"{name_of(pod)}"'
    message = f'Pod {named} matches multiple PodDisruptionBudgets.  Chose "{chosen}" arbitrarily.'
    return Plan([Record(reference_to(pod), "Warning", "MultiplePodDisruptionBudgets", message)])


def plan_stale(pod: Obj, now: float) -> Plan:
    """A pod that was to be disrupted and was not: the mark is taken back."""
    mark = condition_of(pod, "DisruptionTarget")
    if (
        mark is None
        or mark.get("status") != "True"
        or mark.get("reason") == "TerminationByKubelet"  # it takes as long as it takes
        or is_deleted(pod)
        or pod_facts.is_terminal(pod)
    ):
        return NOTHING
    since = seconds_of(mark["lastTransitionTime"]) if mark.get("lastTransitionTime") else now
    left = since + STALE_SECONDS - now
    if left > 0:
        return Plan(again_seconds=left)
    cleared = {"type": "DisruptionTarget", "status": "False", "lastTransitionTime": time_text(now)}
    patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [cleared]}}
    return Plan([Patch(PODS, namespace_of(pod), name_of(pod), patch, "strategic", "status")])


def _expected_pods(situation: Situation) -> tuple[int, int] | str:
    """(expected, desired), or why nobody knows."""
    spec = situation.budget.get("spec") or {}
    unavailable, available = spec.get("maxUnavailable"), spec.get("minAvailable") or 0
    if not needs_scale(situation.budget):
        return len(situation.pods), int(available)
    total = situation.scale
    if isinstance(total, str):
        return total
    if unavailable is not None:
        return total, max(0, total - scaled_value(unavailable, total, round_up=True))
    return total, scaled_value(available, total, round_up=True)


def needs_scale(budget: Obj) -> bool:
    """A number of pods that must be there needs no other number."""
    spec = budget.get("spec") or {}
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def _controllers(pods: Iterable[Obj]) -> dict[str, Obj]:
    """By uid, each with one of its pods: thousands of pods have few."""
    found: dict[str, Obj] = {}
    for pod in pods:
        reference = controller_of(pod)
        if reference is not None:
            found.setdefault(reference.get("uid", ""), pod)
    return found


def _disrupted_pods(
    budget: Obj, pods: Sequence[Obj], now: float
) -> tuple[dict[str, str], float | None]:
    """Pods whose eviction was granted but is not seen yet, and when the next one is given up."""
    there = {name_of(pod) for pod in pods if not is_deleted(pod)}
    listed: dict[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
    left = {
        name: seconds_of(at) + DISRUPTED_SECONDS - now
        for name, at in listed.items()
        if name in there
    }
    kept = {name: listed[name] for name, seconds in left.items() if seconds > 0}
    return kept, min((left[name] for name in kept), default=None)


def _failure(budget: Obj, why: str, now: float) -> Plan:
    """Nothing may go while nobody knows how many there should be."""
    before: Obj = budget.get("status") or {}
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "SyncFailed",
        "message": why,
        "observedGeneration": int(before.get("observedGeneration") or 0),
    }
    status = {
        **before,
        "conditions": with_condition(before.get("conditions") or [], condition, now),
        "disruptionsAllowed": 0,
    }
    for field in ("currentHealthy", "desiredHealthy", "expectedPods"):
        status.setdefault(field, 0)
    patch = status_patch(POD_DISRUPTION_BUDGETS, budget, status)
    if patch is None:
        return NOTHING
    about = reference_to(budget)
    message = f"Failed to calculate the number of expected pods: {why}"
    return Plan([Record(about, "Warning", "CalculateExpectedPodCountFailed", message), patch])


def _status(budget: Obj, condition: Obj, disrupted: dict[str, str], now: float) -> Obj:
    before: Obj = budget.get("status") or {}
    status: Obj = {
        "observedGeneration": meta_of(budget).get("generation", 0),
        "conditions": with_condition(before.get("conditions") or [], condition, now),
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status


async def _plan_key(view: View, key: str | Stale | Contested) -> Plan:
    if isinstance(key, Stale | Contested):
        pod = view.cache(PODS).get(key.pod)
        if pod is None:
            return NOTHING
        if isinstance(key, Contested):
            return plan_contested(pod, _selecting(view.cache, pod))
        return plan_stale(pod, view.now)
    budget = view.cache(POD_DISRUPTION_BUDGETS).get(key)
    if budget is None:
        return NOTHING
    selector = _selector(budget)
    pods = [
        pod
        for pod in selected(view.cache(PODS), LABELS, namespace_of(budget), selector)
        if not pod_facts.is_terminal(pod)
    ]
    if not needs_scale(budget):
        return plan(Situation(budget, pods), view.now)
    unmanaged = any(controller_of(pod) is None for pod in pods)
    return plan(Situation(budget, pods, await _scale(view, pods), unmanaged), view.now)


async def _scale(view: View, pods: Sequence[Obj]) -> int | str:
    """The sizes of all controllers of these pods, each once; pods without one do not count."""
    scales: dict[str, int] = {}
    for pod in _controllers(pods).values():
        root = _root(view.cache, pod)
        try:
            found = root if root is not None else await _foreign_scale(view, pod)
        except (NoScale, ApiError) as error:
            return error.message if isinstance(error, ApiError) else str(error)
        if found is None:
            return f'found no controllers for pod "{name_of(pod)}"'
        scales[uid_of(found)] = replicas_of(found)
    return sum(scales.values())


async def _foreign_scale(view: View, pod: Obj) -> Obj | None:
    """Of a controller that is none of the built-in ones. Raises NoScale, ApiError."""
    reference = controller_of(pod) or {}
    api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    resource = await scaled_resource(view, api_version, kind)
    scale = await scale_of(view, resource, namespace_of(pod), reference.get("name", ""))
    return scale if scale is not None and uid_of(scale) == reference.get("uid") else None


def _root(caches: Caches, obj: Obj) -> Obj | None:
    """The controller that sets how many of these there are: a ReplicaSet's Deployment, if any."""
    reference = controller_of(obj)
    if reference is None:
        return None
    resource = by_kind(reference.get("apiVersion", ""), reference.get("kind", ""))
    if resource is None or resource not in _SCALED:
        return None
    owner = caches(resource).get(f"{namespace_of(obj)}/{reference.get('name', '')}")
    if owner is None or uid_of(owner) != reference.get("uid"):
        return None
    return _root(caches, owner) or owner


def _selecting(caches: Caches, pod: Obj) -> list[Obj]:
    """The budgets that select a pod."""
    labels = labels_of(pod)
    budgets = may_select(caches(POD_DISRUPTION_BUDGETS), namespace_of(pod), labels)
    return [budget for budget in budgets if _selector(budget).matches(labels)]


def _selector(budget: Obj) -> LabelSelector:
    return parsed((budget.get("spec") or {}).get("selector"))


@looks_at(aspects.ANYTHING & ~(aspects.NODE | aspects.SPEC | aspects.OTHER))
def _budgets_of_pod(
    caches: Caches, old: Obj | None, new: Obj | None
) -> Iterable[str | Stale | Contested]:
    pod = new if new is not None else old
    if pod is None:
        return
    if new is not None and condition_of(new, "DisruptionTarget") is not None:
        yield Stale(key_of(new))
    if not len(caches(POD_DISRUPTION_BUDGETS)):
        return
    if old is not None and new is not None and _facts(old) == _facts(new):
        return
    for state in (old, new):
        budgets = _selecting(caches, state) if state is not None else []
        yield from map(key_of, budgets)
        if state is new and len(budgets) > 1:
            yield Contested(key_of(pod))


def _budgets_of_namespace(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """A controller changed its size."""
    if old is not None and new is not None and replicas_of(old) == replicas_of(new):
        return ()
    obj = new if new is not None else old
    namespace = namespace_of(obj) if obj is not None else ""
    return [key_of(budget) for budget in caches(POD_DISRUPTION_BUDGETS).by("namespace", namespace)]


def _facts(pod: Obj) -> tuple[object, ...]:
    return (
        labels_of(pod),
        pod_facts.is_ready(pod),
        pod_facts.is_terminal(pod),
        is_deleted(pod),
        controller_of(pod),
    )
