"""HorizontalPodAutoscalers: the size of a target follows what its pods use.

Job: every 15 s read the target's scale and its pods' metrics, decide, write the scale and say in
    conditions and events what was done and why.
Invariant: without a valid metric the size stays; with some of them invalid it never shrinks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sampan.api import features
from sampan.api.errors import ApiError
from sampan.api.objects import (
    Obj,
    key_of,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    time_text,
)
from sampan.api.quantity import value_of
from sampan.api.resources import HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from sampan.api.rules.conditions import is_true, with_condition
from sampan.api.rules.selectors import SelectorError, parse_label_selector
from sampan.client.events import reference as reference_to
from sampan.client.label_index import LABELS, by_labels, selected
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Outcome,
    Patch,
    Plan,
    Record,
    status_patch,
)
from sampan.controllers.autoscaling.metric_readings import Reading, readings_of
from sampan.controllers.autoscaling.metric_replicas import MetricFailed, Target, proposal
from sampan.controllers.autoscaling.replica_calculator import Tolerances
from sampan.controllers.autoscaling.scaling_behavior import (
    Bounds,
    Memory,
    Moment,
    apply_behavior,
    longest_window,
    with_first_recommendation,
    with_recommendation,
)
from sampan.controllers.controller import Caches, Controller, Later, View
from sampan.controllers.scale_targets import NoScale, Unserved, scaled_resource
from sampan.core.fast_dataclass import dataclass

SYNC_SECONDS = 15.0
SCALED_TO_ZERO = "ScaledToZero"

_WORDS = {
    "ReadyForNewScale": "recommended size matches current size",
    "ScaleDownStabilized": "recent recommendations were higher than current one, applying the "
    "highest recent recommendation",
    "ScaleUpStabilized": "recent recommendations were lower than current one, applying the "
    "lowest recent recommendation",
    "DesiredWithinRange": "the desired count is within the acceptable range",
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "ScaleDownLimit": "the desired replica count is decreasing faster than the maximum scale rate",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
}


_NOTHING_YET = Memory()


@dataclass(frozen=True, slots=True)
class Situation:
    autoscaler: Obj
    target: Resource
    scale: Obj
    pods: Sequence[Obj]  # those that the scale selects
    readings: Sequence[Reading]  # of spec.metrics, in their order
    memory: Memory = _NOTHING_YET
    rivals: Sequence[str] = ()  # keys of other autoscalers of the same pods


@dataclass(frozen=True, slots=True)
class Failure:
    reason: str
    event: str  # what is told
    condition: str  # what the condition ScalingActive says


@dataclass(frozen=True, slots=True)
class Computed:
    """What the metrics together say; `replicas` None: nothing that could be acted on."""

    replicas: int | None
    name: str
    statuses: tuple[Obj, ...] | None  # None: no metric was looked at
    failures: tuple[Failure, ...] = ()
    told: str = ""  # of all that failed


@dataclass(frozen=True, slots=True)
class Decision:
    replicas: int
    why: str
    conditions: tuple[Obj, ...]
    statuses: tuple[Obj, ...] | None = None
    events: tuple[Record, ...] = ()
    memory: Memory = _NOTHING_YET
    failed: bool = False  # what was desired before stays


def horizontal_pod_autoscaler_controller() -> Controller:
    memories: dict[str, Memory] = {}
    selectors: dict[str, str] = {}  # which pods each autoscaler was last seen to care for

    async def planned(view: View, key: str) -> Plan:
        autoscaler = view.cache(HORIZONTAL_POD_AUTOSCALERS).get(key)
        if autoscaler is None:
            memories.pop(key, None)
            selectors.pop(key, None)
            return NOTHING
        found = await _situation(view, autoscaler, memories.get(key, Memory()))
        if isinstance(found, Plan):
            return found
        selectors[key] = (found.scale.get("status") or {}).get("selector") or ""
        found = replace(found, rivals=rivals_of(key, found.pods, selectors))
        plan, memories[key] = plan_autoscaler(found, view.now)
        return plan

    return Controller(
        name="horizontal-pod-autoscaler-controller",
        component="horizontal-pod-autoscaler",
        aliases=("horizontalpodautoscaling",),
        wakes={HORIZONTAL_POD_AUTOSCALERS: _spec_changed},
        planned=planned,
        indices={PODS: {LABELS: by_labels}},
    )


def rivals_of(key: str, pods: Sequence[Obj], selectors: Mapping[str, str]) -> list[str]:
    """The other autoscalers of the namespace that select any of these pods."""
    namespace = key.partition("/")[0]
    others = [
        selector
        for selector in sorted(selectors)
        if selector != key and selector.startswith(f"{namespace}/")
    ]
    return [
        other
        for other in others
        if selectors[other]
        and any(parse_label_selector(selectors[other]).matches(labels_of(pod)) for pod in pods)
    ]


def plan_autoscaler(situation: Situation, now: float) -> tuple[Plan, Memory]:
    autoscaler, scale = situation.autoscaler, situation.scale
    current = int((scale.get("spec") or {}).get("replicas") or 0)
    memory = with_first_recommendation(situation.memory, current, now)
    decision = decide(replace(situation, memory=memory), current, now)
    memory = decision.memory
    if decision.replicas == current:
        status = _status(autoscaler, decision, current, now, rescaled=False)
        return Plan(
            [*decision.events, *_status_patch(autoscaler, status)], None, SYNC_SECONDS
        ), memory
    change = decision.replicas - current
    moment = Moment(now, abs(change))
    if change > 0:
        memory = replace(memory, added=(*memory.added, moment))
    else:
        memory = replace(memory, removed=(*memory.removed, moment))
    rescale = Patch(
        situation.target,
        namespace_of(autoscaler),
        name_of(scale),
        {"spec": {"replicas": decision.replicas}},
        subresource="scale",
    )

    def then(outcomes: Sequence[Outcome]) -> Sequence[Action]:
        return _after_rescale(autoscaler, decision, current, now, outcomes)

    return Plan([*decision.events, rescale], then, SYNC_SECONDS), memory


def decide(situation: Situation, current: int, now: float) -> Decision:
    spec = situation.autoscaler["spec"]
    least = 1 if spec.get("minReplicas") is None else int(spec["minReplicas"])
    most = int(spec["maxReplicas"])
    able = _condition(
        "AbleToScale",
        "True",
        "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
    )
    if current == 0 and not _may_leave_zero(situation.autoscaler, least):
        words = "scaling is disabled since the replica count of the target is zero"
        off = _condition("ScalingActive", "False", "ScalingDisabled", words)
        return Decision(current, "", (able, off), memory=situation.memory)
    if current > most:
        why = "Current number of replicas above Spec.MaxReplicas"
        return Decision(most, why, (able,), memory=situation.memory)
    if 0 < current < least:
        why = "Current number of replicas below Spec.MinReplicas"
        return Decision(least, why, (able,), memory=situation.memory)
    computed = compute(situation, current, now)
    events = _complaints(situation.autoscaler, computed)
    if computed.replicas is None:
        first = computed.failures[0] if computed.failures else _UNMEASURED
        broken = _condition("ScalingActive", "False", first.reason, first.condition)
        return Decision(
            current, "", (able, broken), computed.statuses, events, situation.memory, failed=True
        )
    behavior = spec.get("behavior")
    wanted = computed.replicas
    memory = with_recommendation(situation.memory, wanted, longest_window(behavior), now)
    pace = apply_behavior(behavior, memory, wanted, current, Bounds(least, most), now)
    words = f"the HPA was able to successfully calculate a replica count from {computed.name}"
    limited = "False" if pace.limited == "DesiredWithinRange" else "True"
    conditions = (
        _condition("AbleToScale", "True", pace.stabilized, _WORDS[pace.stabilized]),
        _condition("ScalingActive", "True", "ValidMetricFound", words),
        _condition("ScalingLimited", limited, pace.limited, _WORDS[pace.limited]),
    )
    # As upstream: what the metrics want, before it is paced; nothing where they want no change.
    above, below = f"{computed.name} above target", "All metrics below target"
    why = above if wanted > current else below if wanted < current else ""
    if current == 0 and pace.replicas < least:
        why = why or "Current number of replicas below Spec.MinReplicas"
        return Decision(least, why, conditions, computed.statuses, events, memory)
    return Decision(pace.replicas, why, conditions, computed.statuses, events, memory)


def _may_leave_zero(autoscaler: Obj, least: int) -> bool:
    """Whether metrics decide about a target that has no pods: nobody else may have stopped it."""
    if not features.changed("AutoscalerScaledToZero"):
        return least == 0
    if not features.enabled("HPAScaleToZero") or not is_true(autoscaler, SCALED_TO_ZERO):
        return False
    return least != 0 or _measures_others(autoscaler)


def _measures_others(autoscaler: Obj) -> bool:
    """It has a metric that there is without pods."""
    metrics = autoscaler["spec"].get("metrics") or ()
    return any(metric.get("type") in ("Object", "External") for metric in metrics)


def compute(situation: Situation, current: int, now: float) -> Computed:
    selector = (situation.scale.get("status") or {}).get("selector")
    if not selector:
        why = "selector is required"
        missing = "the HPA target's scale is missing a selector"
        return Computed(None, "", None, (Failure("InvalidSelector", why, missing),), why)
    if situation.rivals:
        keys = sorted((key_of(situation.autoscaler), *situation.rivals))
        told = (
            f"more than one HPA (e.g. [{' '.join(keys[:2])}])"
            if features.changed("AmbiguousSelectorText")
            else f"multiple HPAs: [{' '.join(keys)}]"
        )
        why = f"pods by selector {selector} are controlled by {told}"
        return Computed(None, "", None, (Failure("AmbiguousSelector", why, why),), why)
    return _proposed(situation, current, now)


def _proposed(situation: Situation, current: int, now: float) -> Computed:
    metrics = situation.autoscaler["spec"].get("metrics") or []
    target = Target(
        namespace_of(situation.autoscaler),
        current,
        int((situation.scale.get("status") or {}).get("replicas") or 0),
        situation.pods,
        _tolerances(situation.autoscaler),
        now,
    )
    best, name, first_told = 0, "", ""
    statuses: list[Obj] = []
    failures: list[Failure] = []
    for metric, reading in zip(metrics, situation.readings, strict=True):
        try:
            found = proposal(metric, reading, target)
        except MetricFailed as error:
            first_told = first_told or str(error)
            why = f"the HPA was unable to compute the replica count: {error.why}"
            failures.append(Failure(error.reason, error.why, why))
            statuses.append({"type": ""})  # as upstream: a place that nothing was written into
            continue
        statuses.append(found.status)
        if best == 0 or found.replicas > best:
            best, name = found.replicas, found.name
    told = f"invalid metrics ({len(failures)} invalid out of {len(metrics)}), first error is: "
    told = f"{told}{first_told}" if failures else ""
    invalid = len(failures) >= len(metrics) or (bool(failures) and best < current)
    return Computed(None if invalid else best, name, tuple(statuses), tuple(failures), told)


_UNMEASURED = Failure(
    "InvalidMetricSourceType",
    "there is no metric",
    "the HPA was unable to compute the replica count: there is no metric",
)


def _tolerances(autoscaler: Obj) -> Tolerances:
    behavior = autoscaler["spec"].get("behavior") or {}
    found = Tolerances()
    up = (behavior.get("scaleUp") or {}).get("tolerance")
    down = (behavior.get("scaleDown") or {}).get("tolerance")
    return Tolerances(
        down=found.down if down is None else value_of(down).as_float(),
        up=found.up if up is None else value_of(up).as_float(),
    )


# What is written.


def _complaints(autoscaler: Obj, computed: Computed) -> tuple[Record, ...]:
    about = reference_to(autoscaler)
    events = [
        Record(about, "Warning", _EVENTS.get(failure.reason, failure.reason), failure.event)
        for failure in computed.failures
    ]
    if computed.replicas is None and computed.told:
        events.append(Record(about, "Warning", "FailedComputeMetricsReplicas", computed.told))
    return tuple(events)


_EVENTS = {"InvalidSelector": "SelectorRequired"}


def _after_rescale(
    autoscaler: Obj, decision: Decision, current: int, now: float, outcomes: Sequence[Outcome]
) -> list[Action]:
    about = reference_to(autoscaler)
    error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    if error is not None:
        words = f"the HPA controller was unable to update the target scale: {error.message}"
        failed = _condition("AbleToScale", "False", "FailedUpdateScale", words)
        told = replace(decision, conditions=(*decision.conditions, failed), failed=True)
        status = _status(autoscaler, told, current, now, rescaled=False)
        said = f"New size: {decision.replicas}; reason: {decision.why}; error: {error.message}"
        event = Record(about, "Warning", "FailedRescale", said)
        return [event, *_status_patch(autoscaler, status)]
    words = f"the HPA controller was able to update the target scale to {decision.replicas}"
    done = _condition("AbleToScale", "True", "SucceededRescale", words)
    told = replace(
        decision, conditions=(*decision.conditions, done, *_zero(autoscaler, decision, current))
    )
    said = f"New size: {decision.replicas}; reason: {decision.why}"
    status = _status(autoscaler, told, current, now, rescaled=True)
    event = Record(about, "Normal", "SuccessfulRescale", said)
    return [event, *_status_patch(autoscaler, status)]


def _zero(autoscaler: Obj, decision: Decision, current: int) -> tuple[Obj, ...]:
    """Whether it was this controller that took the last pod; so that it may bring one back."""
    if not (features.changed("AutoscalerScaledToZero") and features.enabled("HPAScaleToZero")):
        return ()
    stopped = current > 0 and decision.replicas == 0 and _measures_others(autoscaler)
    if stopped and autoscaler["spec"].get("minReplicas") == 0:
        words = "the HPA controller scaled the workload to zero"
        return (_condition(SCALED_TO_ZERO, "True", SCALED_TO_ZERO, words),)
    words = "the HPA controller did not scale the workload to zero"
    return (_condition(SCALED_TO_ZERO, "False", "NotScaledToZero", words),)


def _status(
    autoscaler: Obj, decision: Decision, current: int, now: float, *, rescaled: bool
) -> Obj:
    before = autoscaler.get("status") or {}
    conditions = before.get("conditions") or []
    for condition in decision.conditions:
        conditions = with_condition(conditions, condition, now)
    desired = int(before.get("desiredReplicas") or 0) if decision.failed else decision.replicas
    status = {"currentReplicas": current, "desiredReplicas": desired, "conditions": conditions}
    if features.enabled("HPAGeneration"):
        status["observedGeneration"] = int(meta_of(autoscaler).get("generation") or 0)
    if decision.statuses is not None:
        status["currentMetrics"] = list(decision.statuses)
    if rescaled or before.get("lastScaleTime"):
        status["lastScaleTime"] = time_text(now) if rescaled else before["lastScaleTime"]
    return status


def _status_patch(autoscaler: Obj, status: Obj) -> list[Action]:
    patch = status_patch(HORIZONTAL_POD_AUTOSCALERS, autoscaler, status)
    return [] if patch is None else [patch]


def _condition(kind: str, status: str, reason: str, message: str) -> Obj:
    return {"type": kind, "status": status, "reason": reason, "message": message}


# What is read.


async def _situation(view: View, autoscaler: Obj, memory: Memory) -> Situation | Plan:
    reference = autoscaler["spec"]["scaleTargetRef"]
    namespace = namespace_of(autoscaler)
    try:
        target = await scaled_resource(view, reference.get("apiVersion", ""), reference["kind"])
        scale = await view.client.get(target, namespace, reference["name"], subresource="scale")
        text = (scale.get("status") or {}).get("selector") or ""
        pods = selected(view.cache(PODS), LABELS, namespace, parse_label_selector(text))
    except ApiError as error:
        return _no_scale(autoscaler, error.message, view)
    except Unserved:
        group = reference.get("apiVersion", "").rpartition("/")[0]
        why = f'no matches for kind "{reference["kind"]}" in group "{group}"'
        return _no_scale(autoscaler, why, view)
    except (NoScale, SelectorError) as error:
        return _no_scale(autoscaler, str(error), view)
    readings = await readings_of(view, autoscaler, text)
    return Situation(autoscaler, target, scale, pods, readings, memory)


def _no_scale(autoscaler: Obj, why: str, view: View) -> Plan:
    """Nothing else is said: what was known before may still be so."""
    words = f"the HPA controller was unable to get the target's current scale: {why}"
    lost = _condition("AbleToScale", "False", "FailedGetScale", words)
    before = autoscaler.get("status") or {}
    conditions = with_condition(before.get("conditions") or [], lost, view.now)
    status = {"currentReplicas": 0, "desiredReplicas": 0, **before, "conditions": conditions}
    event = Record(reference_to(autoscaler), "Warning", "FailedGetScale", why)
    return Plan([event, *_status_patch(autoscaler, status)], None, SYNC_SECONDS)


def _spec_changed(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str | Later]:
    """As upstream: the first look is one period after it came, and a change waits for the next.
    Its status is our own word."""
    if new is None:
        return () if old is None else (key_of(old),)
    same = old is not None and old.get("spec") == new.get("spec")
    return () if same else (Later(key_of(new), SYNC_SECONDS),)
