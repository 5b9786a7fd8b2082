"""What a trial's record says. Pure.

Job: record → report: totals, waits, how full the nodes were, who went where, what is still Pending
    and why, who preempted whom, what plugins cost.
Invariant: a report is plain JSON; nothing in it depends on the machine but the plugins' costs.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj

MOST_POINTS = 120  # of a line over time
MOST_NAMES = 5  # of pods with one fate
FIRST_RESOURCES = ("cpu", "memory")


def report_of(record: Obj, title: str) -> Obj:
    lives, seconds = record["pods"], record["seconds"]
    totals = _total(record["nodes"])
    resources = _resources(lives, totals)
    costs = [
        {"plugin": name.split()[0], "point": name.split()[1], "calls": calls, "seconds": spent}
        for name, (calls, spent) in record["plugins"].items()
    ]
    return {
        "title": title,
        "seed": record["seed"],
        "seconds": seconds,
        "totals": {**_outcomes(lives), "refused": len(record["refused"])},
        "waits": _waits(lives),
        "utilisation": {name: _mean(record["nodes"], name, seconds) for name in resources},
        "peak": {name: _peak(record["moments"], name, totals) for name in resources},
        "timeline": _timeline(record["moments"], seconds, resources, totals),
        "streams": _streams(lives, {node["name"]: node for node in record["nodes"]}),
        "nodes": [_node(node, resources, seconds) for node in record["nodes"]],
        "pending": _pending(lives),
        "preemptions": _preemptions(lives),
        "refused": record["refused"][:MOST_NAMES],
        "plugins": sorted(costs, key=lambda cost: (-cost["seconds"], cost["plugin"])),
        "placements": [
            {word: life[word] for word in (
                "name", "namespace", "stream", "node", "arrived", "scheduled", "ended", "outcome",
            )}
            for life in lives
        ],
    }  # fmt: skip


def share(amount: float, whole: float) -> float:
    return round(amount / whole, 4) if whole else 0.0


def percentile(values: Sequence[float], part: float) -> float:
    """Of values in their order; 0 where there are none."""
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0.0


def _outcomes(lives: Sequence[Obj]) -> Obj:
    outcomes = Counter(life["outcome"] for life in lives)
    names = ("Succeeded", "Running", "Pending", "Failed", "Preempted", "Deleted")
    return {"pods": len(lives), **{name.lower(): outcomes[name] for name in names}}


def _waits(lives: Sequence[Obj]) -> Obj:
    """Of the pods that were scheduled."""
    waits = sorted(
        life["scheduled"] - life["arrived"] for life in lives if life["scheduled"] is not None
    )
    mean = sum(waits) / len(waits) if waits else 0.0
    found = {
        "mean": mean,
        "p50": percentile(waits, 0.5),
        "p95": percentile(waits, 0.95),
        "max": max(waits, default=0.0),
    }
    return {name: round(value, 3) for name, value in found.items()}


def _total(nodes: Sequence[Obj]) -> dict[str, float]:
    total: dict[str, float] = {}
    for node in nodes:
        for name, amount in node["allocatable"].items():
            total[name] = total.get(name, 0.0) + amount
    return total


def _resources(lives: Sequence[Obj], totals: Mapping[str, float]) -> list[str]:
    """Those that somebody asked for, and that there are."""
    asked = {name for life in lives for name in life["requests"]} & {*totals}
    first = [name for name in FIRST_RESOURCES if name in asked]
    return [*first, *sorted(asked - {*first})]


def _mean(nodes: Sequence[Obj], resource: str, seconds: float) -> float:
    held = sum(node["held"].get(resource, 0.0) for node in nodes)
    return share(held, sum(node["allocatable"].get(resource, 0.0) for node in nodes) * seconds)


def _peak(moments: Sequence[Obj], resource: str, totals: Mapping[str, float]) -> float:
    most = max((moment["used"].get(resource, 0.0) for moment in moments), default=0.0)
    return share(most, totals[resource])


def _timeline(
    moments: Sequence[Obj], seconds: float, resources: Sequence[str], totals: Mapping[str, float]
) -> list[Obj]:
    """At even steps: what was so at that time."""
    if not moments:
        return []
    times = [moment["at"] for moment in moments]
    points = []
    for number in range(MOST_POINTS + 1):
        at = seconds * number / MOST_POINTS
        moment = moments[max(0, bisect_right(times, at) - 1)]
        used = {name: share(moment["used"].get(name, 0.0), totals[name]) for name in resources}
        counts = {name: moment[name] for name in ("pending", "running", "nodes")}
        points.append({"at": round(at, 3), "used": used, **counts})
    return points


def _streams(lives: Sequence[Obj], nodes: Mapping[str, Obj]) -> list[Obj]:
    found = []
    for name in sorted({life["stream"] for life in lives}):
        own = [life for life in lives if life["stream"] == name]
        placed = [nodes[life["node"]] for life in own if life["node"]]
        found.append({
            "name": name, **_outcomes(own), "waits": _waits(own),
            "types": dict(sorted(Counter(node["kind"] for node in placed).items())),
            "zones": dict(sorted(Counter(node["zone"] for node in placed).items())),
        })  # fmt: skip
    return found


def _node(node: Obj, resources: Sequence[str], seconds: float) -> Obj:
    used = {name: _mean([node], name, seconds) for name in resources}
    return {"name": node["name"], "type": node["kind"], "zone": node["zone"],
            "pods": node["pods"], "utilisation": used}  # fmt: skip


def _pending(lives: Sequence[Obj]) -> list[Obj]:
    by_reason: dict[str, list[str]] = {}
    for life in lives:
        if life["outcome"] == "Pending":
            by_reason.setdefault(life["why_pending"], []).append(life["name"])
    ordered = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    return [{"why": why, "count": len(names), "pods": names[:MOST_NAMES]} for why, names in ordered]


def _preemptions(lives: Sequence[Obj]) -> list[Obj]:
    victims = [life for life in lives if life["outcome"] == "Preempted"]
    return [
        {"at": life["ended"], "victim": life["name"], "node": life["node"],
         "by": life["preempted_by"], "ran": round(life["ended"] - life["scheduled"], 3)}
        for life in sorted(victims, key=lambda life: life["ended"])
    ]  # fmt: skip
