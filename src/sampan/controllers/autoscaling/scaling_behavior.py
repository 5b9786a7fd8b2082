"""How fast an autoscaler may go where its metrics want it.

Job: a wanted number, what was recommended and done lately, and the rules → the number for now.
Invariant: the result lies between the least and the most that the autoscaler allows, except that
    the pace keeps it from getting there at once.
As upstream's horizontal.go.
"""

import math
from dataclasses import replace

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

DOWN_WINDOW_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Moment:
    at: float
    amount: int  # recommended replicas, or how many came or went


@dataclass(frozen=True, slots=True)
class Memory:
    """What was recommended and done, oldest first; lost with the process, as upstream's."""

    recommended: tuple[Moment, ...] = ()
    added: tuple[Moment, ...] = ()
    removed: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True)
class Paced:
    replicas: int
    stabilized: str  # reason of AbleToScale
    limited: str  # reason of ScalingLimited; DesiredWithinRange: it is not


def with_first_recommendation(memory: Memory, current: int, now: float) -> Memory:
    """What an autoscaler finds is its first recommendation."""
    return memory if memory.recommended else replace(memory, recommended=(Moment(now, current),))


def with_recommendation(memory: Memory, wanted: int, longest: float, now: float) -> Memory:
    """With the new recommendation, without what nobody asks for any more."""
    kept = tuple(item for item in memory.recommended if item.at >= now - longest)
    return Memory(
        (*kept, Moment(now, wanted)),
        tuple(item for item in memory.added if item.at > now - _LONGEST_PERIOD),
        tuple(item for item in memory.removed if item.at > now - _LONGEST_PERIOD),
    )


def longest_window(behavior: Obj | None) -> float:
    return float(max(_window(behavior, "scaleUp"), _window(behavior, "scaleDown"), 1))


@dataclass(frozen=True, slots=True)
class Bounds:
    """minReplicas and maxReplicas."""

    least: int
    most: int


def apply_behavior(
    behavior: Obj | None, memory: Memory, wanted: int, current: int, bounds: Bounds, now: float
) -> Paced:
    """`memory` has the recommendation that led to `wanted` already."""
    if behavior is None:
        return _without_behavior(memory, wanted, current, bounds, now)
    steady, why = _stabilize(behavior, memory, wanted, current, now)
    up, down = behavior.get("scaleUp"), behavior.get("scaleDown")
    least, most = bounds.least, bounds.most
    if steady > current:
        fastest = max(
            current, max(2 * current, 4) if up is None else _up_limit(up, memory, current, now)
        )
        bound, reason = (fastest, "ScaleUpLimit") if most > fastest else (most, "TooManyReplicas")
        result = min(steady, bound)
    elif steady < current:
        slowest = 0 if down is None else min(current, _down_limit(down, memory, current, now))
        bound, reason = (
            (slowest, "ScaleDownLimit") if least < slowest else (least, "TooFewReplicas")
        )
        result = max(steady, bound)
    else:
        result, reason = min(max(steady, least), most), "TooManyReplicas"
        if result > steady:
            reason = "TooFewReplicas"
    return Paced(result, why, "DesiredWithinRange" if result == steady else reason)


def _without_behavior(
    memory: Memory, wanted: int, current: int, bounds: Bounds, now: float
) -> Paced:
    """As normalizeDesiredReplicas: the highest recent recommendation, also when growing."""
    recent = [item.amount for item in memory.recommended if item.at >= now - DOWN_WINDOW_SECONDS]
    steady = max(wanted, *recent) if recent else wanted
    why = "ReadyForNewScale" if steady == wanted else "ScaleDownStabilized"
    fastest = max(2 * current, 4)
    most, reason = bounds.most, "TooManyReplicas"
    if bounds.most > fastest:
        most, reason = fastest, "ScaleUpLimit"
    if steady < bounds.least:
        return Paced(bounds.least, why, "TooFewReplicas")
    if steady > most:
        return Paced(most, why, reason)
    return Paced(steady, why, "DesiredWithinRange")


def _stabilize(
    behavior: Obj | None, memory: Memory, wanted: int, current: int, now: float
) -> tuple[int, str]:
    """Not lower than the highest of the down window, not higher than the lowest of the up one."""
    lowest, highest = wanted, wanted
    up_window, down_window = _window(behavior, "scaleUp"), _window(behavior, "scaleDown")
    for item in memory.recommended:
        if item.at > now - up_window:
            lowest = min(lowest, item.amount)
        if item.at > now - down_window:
            highest = max(highest, item.amount)
    result = current
    result = lowest if result < lowest else result
    result = highest if result > highest else result
    if result > wanted:
        return result, "ScaleDownStabilized"
    return result, "ScaleUpStabilized" if result < wanted else "ReadyForNewScale"


def _window(behavior: Obj | None, direction: str) -> int:
    rules = (behavior or {}).get(direction) or {}
    window = rules.get("stabilizationWindowSeconds")
    if window is None:
        return DOWN_WINDOW_SECONDS if direction == "scaleDown" else 0
    return int(window)


def _up_limit(rules: Obj, memory: Memory, current: int, now: float) -> int:
    choice = rules.get("selectPolicy") or "Max"
    if choice == "Disabled":
        return current
    limits = []
    for policy in rules.get("policies") or ():
        start = _at_period_start(policy, memory, current, now)
        if policy.get("type") == "Pods":
            limits.append(start + int(policy["value"]))
        else:
            limits.append(math.ceil(start * (1 + policy["value"] / 100)))
    if not limits:
        return current
    return max(limits) if choice == "Max" else min(limits)


def _down_limit(rules: Obj, memory: Memory, current: int, now: float) -> int:
    choice = rules.get("selectPolicy") or "Max"
    if choice == "Disabled":
        return current
    limits = []
    for policy in rules.get("policies") or ():
        start = _at_period_start(policy, memory, current, now)
        if policy.get("type") == "Pods":
            limits.append(start - int(policy["value"]))
        else:
            limits.append(int(start * (1 - policy["value"] / 100)))
    if not limits:
        return current
    # The largest change is the lowest number.
    return max(0, min(limits) if choice == "Max" else max(limits))


def _at_period_start(policy: Obj, memory: Memory, current: int, now: float) -> int:
    since = now - float(policy.get("periodSeconds") or 0)
    added = sum(item.amount for item in memory.added if item.at > since)
    removed = sum(item.amount for item in memory.removed if item.at > since)
    return current - added + removed


_LONGEST_PERIOD = 1800.0  # validation allows no longer one
