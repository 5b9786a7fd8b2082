"""How many replicas a resource metric asks for.

Job: a metric's target, the pods and what they use → a number of replicas. Pure.
Invariant: pods whose use is unknown are counted so that the change becomes smaller, never larger,
    and never turns round.
As upstream's replica_calculator.go.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from sampan.api.objects import Obj, is_deleted, name_of, seconds_of
from sampan.api.quantity import value_of
from sampan.api.rules import pod_resources
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.durations import parse_seconds
from sampan.core.durations import DurationError
from sampan.core.fast_dataclass import dataclass

INITIALIZATION_SECONDS = 300.0  # a starting pod's CPU says little
READINESS_DELAY_SECONDS = 30.0
TOLERANCE = 0.1
MOST_REPLICAS, MOST_MILLI = 2**31 - 1, 2**63 - 1


class CannotCompute(Exception):
    """In upstream's words."""


@dataclass(frozen=True, slots=True)
class Sample:
    milli: int
    at: float  # the end of the window
    window_seconds: float


@dataclass(frozen=True, slots=True)
class Tolerances:
    down: float = TOLERANCE
    up: float = TOLERANCE

    def hold(self, ratio: float) -> bool:
        return (1.0 - self.down) <= ratio <= (1.0 + self.up)


@dataclass(frozen=True, slots=True)
class Wanted:
    replicas: int
    utilization: int | None  # percent of the requests
    average_milli: int


@dataclass(frozen=True, slots=True)
class Grouped:
    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def samples_of(metrics: Sequence[Obj], resource: str, container: str) -> dict[str, Sample]:
    """PodMetrics → by pod. A pod of which a container is not measured is left out."""
    found = {}
    for pod in metrics:
        containers = pod.get("containers") or []
        if container:
            containers = [item for item in containers if item.get("name") == container]
        used = [(item.get("usage") or {}).get(resource) for item in containers]
        if not used or None in used:
            continue
        total = sum(value_of(item).milli() for item in used if item is not None)
        at = seconds_of(pod["timestamp"]) if pod.get("timestamp") else 0.0
        found[name_of(pod)] = Sample(total, at, _window_seconds(str(pod.get("window") or "")))
    return found


def group_pods(
    pods: Sequence[Obj], samples: Mapping[str, Sample], resource: str, now: float
) -> Grouped:
    ready = 0
    unready, missing, ignored = set(), set(), set()
    for pod in pods:
        name = name_of(pod)
        if is_deleted(pod) or pod_facts.phase(pod) == "Failed":
            ignored.add(name)
        elif pod_facts.phase(pod) == "Pending":
            unready.add(name)
        elif name not in samples:
            missing.add(name)
        elif resource == "cpu" and _is_warming_up(pod, samples[name], now):
            unready.add(name)
        else:
            ready += 1
    return Grouped(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


@dataclass(frozen=True, slots=True)
class Usage:
    """A resource of the pods that are scaled, of one of their containers or of all (empty)."""

    resource: str
    container: str
    pods: Sequence[Obj]
    samples: Mapping[str, Sample]  # by the pod's name


def for_utilization(
    current: int, target_percent: int, usage: Usage, tolerances: Tolerances, now: float
) -> Wanted:
    groups, used = _measure(usage, now)
    requests = {
        name_of(pod): requests_milli(pod, usage.resource, usage.container) for pod in usage.pods
    }

    def ratio(amounts: Mapping[str, int]) -> tuple[float, int]:
        asked = sum(requests[name] for name in amounts)
        if asked == 0:
            raise CannotCompute("no metrics returned matched known pods")
        percent = sum(amounts.values()) * 100 // asked
        return percent / target_percent, percent

    first, percent = ratio(used)
    average = sum(used.values()) // len(used)
    fallback = {name: requests[name] * max(100, target_percent) // 100 for name in groups.missing}
    filled = _with_guesses(used, groups, first, fallback)
    replicas = _replicas(current, groups, first, filled, lambda all_: ratio(all_)[0], tolerances)
    return Wanted(replicas, percent, average)


def for_average(
    current: int, target_milli: int, usage: Usage, tolerances: Tolerances, now: float
) -> Wanted:
    groups, used = _measure(usage, now)

    def ratio(amounts: Mapping[str, int]) -> float:
        return sum(amounts.values()) / len(amounts) / target_milli

    first = ratio(used)
    filled = _with_guesses(used, groups, first, dict.fromkeys(groups.missing, target_milli))
    replicas = _replicas(current, groups, first, filled, ratio, tolerances)
    return Wanted(replicas, None, sum(used.values()) // len(used))


def for_ratio(current: int, ratio: float, pods: Sequence[Obj], tolerances: Tolerances) -> int:
    """Of a value that all pods have together, and its target."""
    if current == 0:
        return _bounded(ratio)
    if tolerances.hold(ratio):
        return current
    if not pods:
        why = "no pods returned by selector while calculating replica count"
        raise CannotCompute(f"unable to calculate ready pods: {why}")
    return _bounded(ratio * sum(_is_running_and_ready(pod) for pod in pods))


def for_share(reported: int, usage_milli: int, target_milli: int, tolerances: Tolerances) -> Wanted:
    """Of a value of which each pod has its part. `reported`: the replicas of the scale's status."""
    ratio = usage_milli / (target_milli * reported) if reported else math.inf
    replicas = reported if tolerances.hold(ratio) else _bounded(usage_milli / target_milli)
    share = math.ceil(usage_milli / reported) if reported else MOST_MILLI
    return Wanted(replicas, None, min(share, MOST_MILLI))


def _bounded(replicas: float) -> int:
    return MOST_REPLICAS if replicas > MOST_REPLICAS else math.ceil(replicas)


def _is_running_and_ready(pod: Obj) -> bool:
    return pod_facts.phase(pod) == "Running" and pod_facts.is_ready(pod)


def requests_milli(pod: Obj, resource: str, container: str) -> int:
    """In thousandths: of the pod as a whole where it says so, else every container must."""
    whole = ((pod.get("spec") or {}).get("resources") or {}).get("requests") or {}
    if not container and any(map(pod_resources.can_be_asked_for_as_a_whole, whole)):
        asked = pod_resources.requests(pod).get(resource)
        if asked is None:
            raise CannotCompute(f"missing pod-level request for {resource} in Pod {name_of(pod)}")
        return asked.milli()
    return _of_containers(pod, resource, container)


def _of_containers(pod: Obj, resource: str, container: str) -> int:
    sidecars = [item for item in pod_facts.init_containers(pod) if pod_facts.is_sidecar(item)]
    listed = [
        item
        for item in (*pod_facts.containers(pod), *sidecars)
        if not container or item.get("name") == container
    ]
    if container and not listed:
        raise CannotCompute(f"container {container} not found in Pod {name_of(pod)}")
    total = 0
    for item in listed:
        written = ((item.get("resources") or {}).get("requests") or {}).get(resource)
        if written is None:
            raise CannotCompute(
                f"missing request for {resource} in container {item.get('name')} "
                f"of Pod {name_of(pod)}"
            )
        total += value_of(written).milli()
    return total


def _measure(usage: Usage, now: float) -> tuple[Grouped, dict[str, int]]:
    if not usage.pods:
        raise CannotCompute("no pods returned by selector while calculating replica count")
    groups = group_pods(usage.pods, usage.samples, usage.resource, now)
    known = {name_of(pod) for pod in usage.pods} - groups.ignored - groups.unready
    used = {name: sample.milli for name, sample in usage.samples.items() if name in known}
    if not used:
        raise CannotCompute("did not receive metrics for targeted pods (pods might be unready)")
    return groups, used


def _with_guesses(
    used: Mapping[str, int], groups: Grouped, ratio: float, fallback: Mapping[str, int]
) -> dict[str, int]:
    """With a guess for those that were not measured: busy when shrinking, idle when growing."""
    filled = dict(used)
    if ratio < 1.0:
        filled.update({name: fallback[name] for name in groups.missing})
    elif ratio > 1.0:
        filled.update(dict.fromkeys(groups.missing, 0))
        filled.update(dict.fromkeys(groups.unready, 0))
    return filled


def _replicas(
    current: int,
    groups: Grouped,
    first: float,
    filled: Mapping[str, int],
    ratio: Callable[[Mapping[str, int]], float],
    tolerances: Tolerances,
) -> int:
    growing_with_unready = bool(groups.unready) and first > 1.0
    if not growing_with_unready and not groups.missing:
        if tolerances.hold(first):
            return current
        return math.ceil(first * groups.ready)
    second = ratio(filled)
    if tolerances.hold(second) or (first < 1.0 < second) or (second < 1.0 < first):
        return current
    wanted = math.ceil(second * len(filled))
    if (second < 1.0 and wanted > current) or (second > 1.0 and wanted < current):
        return current
    return wanted


def _is_warming_up(pod: Obj, sample: Sample, now: float) -> bool:
    ready = pod_facts.condition(pod, "Ready")
    started = (pod.get("status") or {}).get("startTime")
    if ready is None or not started:
        return True
    changed = seconds_of(ready["lastTransitionTime"]) if ready.get("lastTransitionTime") else 0.0
    is_unready = ready.get("status") == "False"
    if seconds_of(started) + INITIALIZATION_SECONDS > now:
        return is_unready or sample.at < changed + sample.window_seconds
    return is_unready and seconds_of(started) + READINESS_DELAY_SECONDS > changed


def _window_seconds(text: str) -> float:
    """As metrics carry it: `15s`, `1m0s`, `10.5s`; nothing where it cannot be read."""
    try:
        return parse_seconds(text)
    except DurationError:
        return 0.0
