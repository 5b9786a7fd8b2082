"""HorizontalPodAutoscalers: the size of a target follows what its pods use.

Job: every 15 s read the target's scale and its pods' metrics, decide, write the scale and say in
    conditions and events what was done and why.
Invariant: without a valid metric the size stays; with some of them invalid it never shrinks.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, key_of, labels_of, meta_of, name_of, namespace_of, time_text
from sampan.api.quantity import from_milli, value_of
from sampan.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    POD_METRICS,
    PODS,
    Resource,
    by_kind,
)
from sampan.api.rules.conditions import with_condition
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
from sampan.controllers.autoscaling.replica_calculator import (
    CannotCompute,
    Sample,
    Tolerances,
    Usage,
    Wanted,
    for_average,
    for_utilization,
    samples_of,
)
from sampan.controllers.autoscaling.scaling_behavior import (
    Bounds,
    Memory,
    Moment,
    apply_behavior,
    longest_window,
    with_recommendation,
)
from sampan.controllers.controller import Caches, Controller, View
from sampan.core.fast_dataclass import dataclass

SYNC_SECONDS = 15.0

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
    metrics: Sequence[Obj] | ApiError  # PodMetrics, or why there are none
    memory: Memory = _NOTHING_YET
    rivals: Sequence[str] = ()  # keys of other autoscalers of the same pods


@dataclass(frozen=True, slots=True)
class Failure:
    reason: str
    event: str  # what is told
    condition: str  # what the condition ScalingActive says
    source: str = ""  # "failed to get cpu resource metric value: …"


@dataclass(frozen=True, slots=True)
class Computed:
    """What the metrics together say; `replicas` None: nothing that could be acted on."""

    replicas: int | None
    name: str
    statuses: tuple[Obj, ...]
    failure: Failure | None  # of the first metric that failed


@dataclass(frozen=True, slots=True)
class Decision:
    replicas: int
    why: str
    conditions: tuple[Obj, ...]
    statuses: tuple[Obj, ...] = ()
    events: tuple[Record, ...] = ()
    memory: Memory = _NOTHING_YET


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
        indices={PODS: {LABELS: by_labels}, CUSTOM_RESOURCE_DEFINITIONS: {}},
        optional={CUSTOM_RESOURCE_DEFINITIONS},
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
    decision = decide(situation, current, now)
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
    if current == 0 and least != 0:
        words = "scaling is disabled since the replica count of the target is zero"
        off = _condition("ScalingActive", "False", "ScalingDisabled", words)
        return Decision(current, "", (able, off), memory=situation.memory)
    if current > most:
        why = "Current number of replicas above Spec.MaxReplicas"
        return Decision(most, why, (able,), memory=situation.memory)
    if current < least:
        why = "Current number of replicas below Spec.MinReplicas"
        return Decision(least, why, (able,), memory=situation.memory)
    computed = compute(situation, current, now)
    events = _complaints(situation.autoscaler, computed)
    if computed.replicas is None:
        failure = computed.failure or _UNMEASURED
        broken = _condition("ScalingActive", "False", failure.reason, failure.condition)
        return Decision(
            current, "", (able, broken), computed.statuses, events, memory=situation.memory
        )
    behavior = spec.get("behavior")
    wanted = computed.replicas
    memory = with_recommendation(situation.memory, wanted, current, longest_window(behavior), now)
    pace = apply_behavior(behavior, memory, wanted, current, Bounds(least, most), now)
    words = f"the HPA was able to successfully calculate a replica count from {computed.name}"
    limited = "False" if pace.limited == "DesiredWithinRange" else "True"
    conditions = (
        _condition("AbleToScale", "True", pace.stabilized, _WORDS[pace.stabilized]),
        _condition("ScalingActive", "True", "ValidMetricFound", words),
        _condition("ScalingLimited", limited, pace.limited, _WORDS[pace.limited]),
    )
    grows = pace.replicas > current
    why = f"{computed.name} above target" if grows else "All metrics below target"
    return Decision(pace.replicas, why, conditions, computed.statuses, events, memory)


def compute(situation: Situation, current: int, now: float) -> Computed:
    metrics = situation.autoscaler["spec"].get("metrics") or []
    selector = (situation.scale.get("status") or {}).get("selector")
    if not selector:
        why = "the HPA target's scale is missing a selector"
        required = Failure("InvalidSelector", "selector is required", why)
        return Computed(None, "", (), required)
    if situation.rivals:
        return Computed(None, "", (), _ambiguous(situation, selector))
    best, name = None, ""
    statuses: list[Obj] = []
    failures: list[Failure] = []
    for metric in metrics:
        try:
            wanted, called, status = _for_metric(metric, situation, current, now)
        except CannotCompute as error:
            failures.append(_failure(metric, str(error)))
            continue
        statuses.append(status)
        if best is None or wanted.replicas > best:
            best, name = wanted.replicas, called
    if failures and (best is None or best < current):
        best = None
    return Computed(best, name, tuple(statuses), failures[0] if failures else None)


_UNABLE = "the HPA was unable to compute the replica count: "
_UNMEASURED = Failure(
    "InvalidMetricSourceType", "there is no metric", f"{_UNABLE}there is no metric"
)
_FAILURES = {
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "Pods": "FailedGetPodsMetric",
    "Object": "FailedGetObjectMetric",
    "External": "FailedGetExternalMetric",
}


def _failure(metric: Obj, why: str) -> Failure:
    """In upstream's three wordings of the same thing."""
    kind = metric.get("type", "")
    reason = _FAILURES.get(kind, "InvalidMetricSourceType")
    source = {
        "Resource": f"{(metric.get('resource') or {}).get('name')} resource",
        "ContainerResource": f"{(metric.get('containerResource') or {}).get('name')} container",
    }.get(kind, kind.lower())
    return Failure(reason, why, f"{_UNABLE}{why}", f"failed to get {source} metric value: {why}")


def _ambiguous(situation: Situation, selector: str) -> Failure:
    keys = " ".join(sorted((key_of(situation.autoscaler), *situation.rivals)))
    why = f"pods by selector {selector} are controlled by multiple HPAs: [{keys}]"
    return Failure("AmbiguousSelector", why, why, why)


def _for_metric(
    metric: Obj, situation: Situation, current: int, now: float
) -> tuple[Wanted, str, Obj]:
    kind = metric.get("type", "")
    if kind not in ("Resource", "ContainerResource"):
        raise CannotCompute(
            f"metrics of type {kind} come from an adapter of custom metrics, and none is served"
        )
    field = "resource" if kind == "Resource" else "containerResource"
    source = metric[field]
    resource, container = source["name"], source.get("container") or ""
    percent = (source.get("target") or {}).get("averageUtilization")
    called = f"{resource} {'container ' if container else ''}resource"
    try:
        wanted = _for_resource(source, situation, current, now)
    except CannotCompute as error:
        what = "usage" if percent is None else "utilization"
        raise CannotCompute(f"failed to get {resource} {what}: {error}") from error
    current_value: Obj = {}
    if percent is not None:
        called += " utilization (percentage of request)"
        current_value["averageUtilization"] = wanted.utilization
    current_value["averageValue"] = str(from_milli(wanted.average_milli))
    status: Obj = {"name": resource, "current": current_value}
    if container:
        status["container"] = container
    return wanted, called, {"type": kind, field: status}


def _for_resource(source: Obj, situation: Situation, current: int, now: float) -> Wanted:
    resource, container = source["name"], source.get("container") or ""
    target = source.get("target") or {}
    samples = _samples(situation, resource, container)
    usage = Usage(resource, container, situation.pods, samples)
    tolerances = _tolerances(situation.autoscaler)
    percent = target.get("averageUtilization")
    if percent is not None:
        return for_utilization(current, int(percent), usage, tolerances, now)
    goal = value_of(target.get("averageValue") or 0).milli()
    if goal <= 0:
        raise CannotCompute("invalid resource metric source: no target is set")
    return for_average(current, goal, usage, tolerances, now)


def _samples(situation: Situation, resource: str, container: str) -> Mapping[str, Sample]:
    why = f"unable to get metrics for resource {resource}: "
    if isinstance(situation.metrics, ApiError):
        fetch = "unable to fetch metrics from resource metrics API"
        raise CannotCompute(f"{why}{fetch}: {situation.metrics.message}")
    samples = samples_of(situation.metrics, resource, container)
    if not samples:
        raise CannotCompute(f"{why}no metrics returned from resource metrics API")
    return samples


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
    if computed.failure is None:
        return ()
    about, failure = reference_to(autoscaler), computed.failure
    reason = "SelectorRequired" if failure.reason == "InvalidSelector" else failure.reason
    first = Record(about, "Warning", reason, failure.event)
    if computed.replicas is not None or not failure.source:
        return (first,)
    total = len(autoscaler["spec"].get("metrics") or ())
    bad = total - len(computed.statuses)
    words = f"invalid metrics ({bad} invalid out of {total}), first error is: {failure.source}"
    if failure.source == failure.event:  # not of one metric: of all
        words = failure.event
    return (first, Record(about, "Warning", "FailedComputeMetricsReplicas", words))


def _after_rescale(
    autoscaler: Obj, decision: Decision, current: int, now: float, outcomes: Sequence[Outcome]
) -> list[Action]:
    about = reference_to(autoscaler)
    error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    if error is not None:
        words = f"the HPA controller was unable to update the target scale: {error.message}"
        failed = _condition("AbleToScale", "False", "FailedUpdateScale", words)
        told = replace(decision, conditions=(*decision.conditions, failed), replicas=current)
        status = _status(autoscaler, told, current, now, rescaled=False)
        said = f"New size: {decision.replicas}; reason: {decision.why}; error: {error.message}"
        event = Record(about, "Warning", "FailedRescale", said)
        return [event, *_status_patch(autoscaler, status)]
    words = f"the HPA controller was able to update the target scale to {decision.replicas}"
    done = _condition("AbleToScale", "True", "SucceededRescale", words)
    told = replace(decision, conditions=(*decision.conditions, done))
    said = f"New size: {decision.replicas}; reason: {decision.why}"
    status = _status(autoscaler, told, current, now, rescaled=True)
    event = Record(about, "Normal", "SuccessfulRescale", said)
    return [event, *_status_patch(autoscaler, status)]


def _status(
    autoscaler: Obj, decision: Decision, current: int, now: float, *, rescaled: bool
) -> Obj:
    before = autoscaler.get("status") or {}
    conditions = before.get("conditions") or []
    for condition in decision.conditions:
        conditions = with_condition(conditions, condition, now)
    status = {
        **before,
        "observedGeneration": meta_of(autoscaler).get("generation", 0),
        "currentReplicas": current,
        "desiredReplicas": decision.replicas,
        "conditions": conditions,
    }
    if decision.statuses:
        status["currentMetrics"] = list(decision.statuses)
    if rescaled:
        status["lastScaleTime"] = time_text(now)
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
    target = _resource(view.cache, reference.get("apiVersion", ""), reference["kind"])
    if target is None:
        kind, version = reference["kind"], reference.get("apiVersion") or "v1"
        return _no_scale(autoscaler, f'no matches for kind "{kind}" in version "{version}"', view)
    try:
        scale = await view.client.get(target, namespace, reference["name"], subresource="scale")
    except ApiError as error:
        return _no_scale(autoscaler, error.message, view)
    text = (scale.get("status") or {}).get("selector") or ""
    try:
        selector = parse_label_selector(text)
    except SelectorError as error:
        return _no_scale(autoscaler, str(error), view)
    pods = selected(view.cache(PODS), LABELS, namespace, selector)
    metrics = await _or_error(lambda: _metrics(view, namespace, text))
    return Situation(autoscaler, target, scale, pods, metrics, memory)


async def _metrics(view: View, namespace: str, selector: str) -> Sequence[Obj]:
    return (await view.client.list(POD_METRICS, namespace, label_selector=selector)).items


async def _or_error(
    read: Callable[[], Awaitable[Sequence[Obj]]],
) -> Sequence[Obj] | ApiError:
    try:
        return await read()
    except ApiError as error:
        return error


def _no_scale(autoscaler: Obj, why: str, view: View) -> Plan:
    words = f"the HPA controller was unable to get the target's current scale: {why}"
    lost = _condition("AbleToScale", "False", "FailedGetScale", words)
    before = autoscaler.get("status") or {}
    current = int(before.get("currentReplicas") or 0)
    status = _status(autoscaler, Decision(current, "", (lost,)), current, view.now, rescaled=False)
    event = Record(reference_to(autoscaler), "Warning", "FailedGetScale", why)
    return Plan([event, *_status_patch(autoscaler, status)], None, SYNC_SECONDS)


def _resource(caches: Caches, api_version: str, kind: str) -> Resource | None:
    found = by_kind(api_version or "v1", kind)
    if found is not None:
        return (
            found
            if any(subresource.name == "scale" for subresource in found.subresources)
            else None
        )
    group, _, version = api_version.rpartition("/")
    for definition in caches(CUSTOM_RESOURCE_DEFINITIONS).all():
        spec = definition["spec"]
        if spec["group"] == group and spec["names"]["kind"] == kind:
            served = any(
                item["name"] == version and (item.get("subresources") or {}).get("scale")
                for item in spec["versions"]
            )
            return Resource(group, version, kind, spec["names"]["plural"]) if served else None
    return None


def _spec_changed(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Its status is our own word."""
    if old is not None and new is not None:
        return () if old.get("spec") == new.get("spec") else (key_of(new),)
    obj = new if new is not None else old
    return () if obj is None else (key_of(obj),)
