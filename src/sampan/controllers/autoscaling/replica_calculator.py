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
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.durations import DurationError, parse_seconds
from sampan.core.fast_dataclass import dataclass

INITIALIZATION_SECONDS = 300.0  # a starting pod's CPU says little
READINESS_DELAY_SECONDS = 30.0
TOLERANCE = 0.1


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


def requests_milli(pod: Obj, resource: str, container: str) -> int:
    """In thousandths. Every container must say what it asks for."""
    sidecars = [item for item in pod_facts.init_containers(pod) if pod_facts.is_sidecar(item)]
    total = 0
    for item in (*pod_facts.containers(pod), *sidecars):
        if container and item.get("name") != container:
            continue
        written = ((item.get("resources") or {}).get("requests") or {}).get(resource)
        if written is None:
            raise CannotCompute(
                f"missing request for {resource} in container {item.get('name')} "
                f"of Pod {name_of(pod)}"
            )
        total += value_of(written).milli()
    return total


def _measure(usage: Usage, now: float) -> tuple[Grouped, dict[str, int]]:
    if not usage.samples:
        raise CannotCompute("no metrics returned from resource metrics API")
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
