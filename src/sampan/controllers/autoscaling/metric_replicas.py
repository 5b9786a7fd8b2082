"""How many replicas one metric of an autoscaler asks for, and what the status says of it.

Job: a metric's spec and its reading → replicas, the metric's name for conditions and events, and
    its MetricStatus; or why not, in upstream's wordings. Pure.
"""

from collections.abc import Sequence

from sampan.api import features
from sampan.api.go_text import go_label_selector
from sampan.api.objects import Obj
from sampan.api.quantity import Format, from_milli, value_of
from sampan.controllers.autoscaling.metric_readings import Reading
from sampan.controllers.autoscaling.replica_calculator import (
    CannotCompute,
    Tolerances,
    Usage,
    for_average,
    for_ratio,
    for_share,
    for_utilization,
)
from sampan.core.fast_dataclass import dataclass

REASONS = {
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "Pods": "FailedGetPodsMetric",
    "Object": "FailedGetObjectMetric",
    "External": "FailedGetExternalMetric",
}


@dataclass(frozen=True, slots=True)
class Target:
    """What is scaled."""

    namespace: str
    replicas: int  # of the scale's spec
    reported: int  # of its status
    pods: Sequence[Obj]
    tolerances: Tolerances
    now: float


@dataclass(frozen=True, slots=True)
class Proposal:
    replicas: int
    name: str
    status: Obj


class MetricFailed(Exception):
    """`why` for event and condition; as text, what is said of it among others."""

    def __init__(self, reason: str, why: str, told: str) -> None:
        super().__init__(told)
        self.reason, self.why = reason, why


def proposal(metric: Obj, reading: Reading, target: Target) -> Proposal:
    """Raises MetricFailed."""
    kind = metric.get("type", "")
    reason = REASONS.get(kind, "InvalidMetricSourceType")
    try:
        match kind:
            case "Resource" | "ContainerResource":
                return _of_resource(metric, reading, target)
            case "Pods":
                return _of_pods(metric["pods"], reading, target)
            case "Object":
                return _of_object(metric["object"], reading, target)
            case "External":
                return _of_external(metric["external"], reading, target)
    except CannotCompute as error:
        why = str(error)
        raise MetricFailed(reason, why, _told(metric, why)) from error
    why = f'unknown metric source type "{kind}"'
    raise MetricFailed(reason, why, why)


def _told(metric: Obj, why: str) -> str:
    match metric.get("type"):
        case "Resource":
            return f"failed to get {metric['resource']['name']} resource metric value: {why}"
        case "ContainerResource":
            named = metric["containerResource"]["container"]
            return f"failed to get {named} container metric value: {why}"
        case "Pods":
            return f"failed to get pods metric value: {why}"
        case "Object":
            wanted = metric["object"]
            if (wanted.get("target") or {}).get("type") == "AverageValue":
                why = f"failed to get {wanted['metric']['name']} object metric: {why}"
            return f"failed to get object metric value: {why}"
    wanted = metric["external"]
    named = wanted["metric"]["name"]
    if (wanted.get("target") or {}).get("averageValue") is not None:
        why = f"failed to get {named} external metric: {why}"
    elif (wanted.get("target") or {}).get("value") is not None:
        why = f"failed to get external metric {named}: {why}"
    return f"failed to get {named} external metric value: {why}"


def _of_resource(metric: Obj, reading: Reading, target: Target) -> Proposal:
    kind = metric["type"]
    field = "resource" if kind == "Resource" else "containerResource"
    source = metric[field]
    resource, container = source["name"], source.get("container") or ""
    goal = source.get("target") or {}
    average, percent = goal.get("averageValue"), goal.get("averageUtilization")
    if average is None and percent is None:
        raise CannotCompute(
            "invalid resource metric source: neither an average utilization target nor an average "
            "value (usage) target was set"
        )
    what = "usage" if average is not None else "utilization"
    try:
        if reading.failure:
            raise CannotCompute(f"unable to get metrics for resource {resource}: {reading.failure}")
        usage = Usage(resource, container, target.pods, reading.samples or {})
        if average is not None:
            milli = value_of(average).milli()
            wanted = for_average(target.replicas, milli, usage, target.tolerances, target.now)
        else:
            wanted = for_utilization(
                target.replicas, int(percent or 0), usage, target.tolerances, target.now
            )
    except CannotCompute as error:
        raise CannotCompute(f"failed to get {resource} {what}: {error}") from error
    name = f"{resource} resource"
    current: Obj = {}
    if average is None:
        whose = "container resource" if container else "resource"
        name = f"{resource} {whose} utilization (percentage of request)"
        current["averageUtilization"] = wanted.utilization
    form = Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI
    current["averageValue"] = str(from_milli(wanted.average_milli, form))
    status: Obj = {"name": resource, "current": current}
    if container:
        status["container"] = container
    return Proposal(wanted.replicas, name, {"type": kind, field: status})


def _of_pods(source: Obj, reading: Reading, target: Target) -> Proposal:
    named = source["metric"]["name"]
    if reading.failure:
        raise CannotCompute(f"unable to get metric {named}: {reading.failure}")
    goal = value_of((source.get("target") or {}).get("averageValue") or 0).milli()
    usage = Usage("", "", target.pods, reading.samples or {})
    wanted = for_average(target.replicas, goal, usage, target.tolerances, target.now)
    current = {"averageValue": str(from_milli(wanted.average_milli))}
    status = {"metric": _identifier(source["metric"]), "current": current}
    return Proposal(wanted.replicas, f"pods metric {named}", {"type": "Pods", "pods": status})


def _of_object(source: Obj, reading: Reading, target: Target) -> Proposal:
    metric, described = source["metric"], source["describedObject"]
    goal = source.get("target") or {}
    kind, value, average = goal.get("type"), goal.get("value"), goal.get("averageValue")
    status: Obj = {"describedObject": described, "metric": _identifier(metric)}
    if not _is_set(kind, value, average):
        raise CannotCompute(
            "invalid object metric source: neither a value target nor an average value target was "
            "set"
        )
    if reading.failure:
        kind, name = described.get("kind"), described.get("name")
        if features.changed("ObjectMetricText"):
            whose = f" on {kind} {target.namespace}/{name}: {reading.failure}"
        else:  # in the order in which upstream printed it
            whose = f": {kind} on {target.namespace} {name}/{reading.failure}"
        raise CannotCompute(f"unable to get metric {metric['name']}{whose}")
    if kind == "Value":
        ratio = reading.milli / value_of(value or 0).milli()
        replicas = for_ratio(target.replicas, ratio, target.pods, target.tolerances)
        status["current"] = {"value": str(from_milli(reading.milli))}
        name = f"{described.get('kind')} metric {metric['name']}"
    else:
        wanted = for_share(
            target.reported, reading.milli, value_of(average or 0).milli(), target.tolerances
        )
        replicas = wanted.replicas
        status["current"] = {"averageValue": str(from_milli(wanted.average_milli))}
        name = f"external metric {metric['name']}({go_label_selector(metric.get('selector'))})"
    return Proposal(replicas, name, {"type": "Object", "object": status})


def _of_external(source: Obj, reading: Reading, target: Target) -> Proposal:
    metric, goal = source["metric"], source.get("target") or {}
    value, average = goal.get("value"), goal.get("averageValue")
    selector = go_label_selector(metric.get("selector"))
    if value is None and average is None:
        raise CannotCompute(
            "invalid external metric source: neither a value target nor an average value target "
            "was set"
        )
    if reading.failure:
        whose = f"{target.namespace}/{metric['name']}/{selector}"
        raise CannotCompute(f"unable to get external metric {whose}: {reading.failure}")
    usage = sum(reading.values)
    status: Obj = {"metric": _identifier(metric)}
    if average is not None:
        wanted = for_share(target.reported, usage, value_of(average).milli(), target.tolerances)
        replicas = wanted.replicas
        status["current"] = {"averageValue": str(from_milli(wanted.average_milli))}
    else:
        ratio = usage / value_of(value or 0).milli()
        replicas = for_ratio(target.replicas, ratio, target.pods, target.tolerances)
        status["current"] = {"value": str(from_milli(usage))}
    name = f"external metric {metric['name']}({selector})"
    return Proposal(replicas, name, {"type": "External", "external": status})


def _is_set(kind: str | None, value: object, average: object) -> bool:
    return (kind == "Value" and value is not None) or (
        kind == "AverageValue" and average is not None
    )


def _identifier(metric: Obj) -> Obj:
    named = {"name": metric["name"]}
    return {**named, "selector": metric["selector"]} if metric.get("selector") else named
