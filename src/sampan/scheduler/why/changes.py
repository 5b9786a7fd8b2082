"""The smallest changes that would let a pod fit. Pure.

Job: a refused pod and the nodes as they are → changes to the pod, one at a time, each with the
    number of nodes that it opens.
Invariant: a change that is named was tried: with it, and it alone, so many nodes pass all rules.
"""

from dataclasses import replace
from itertools import islice

import numpy as np

from sampan.api.rules.node_selectors import Requirements
from sampan.api.rules.tolerations import NO_EXECUTE, NO_SCHEDULE, Toleration
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.decision.decide import filter_nodes, refused_beforehand
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.pod_terms import NO_DEMANDS
from sampan.scheduler.model.requests import CPU
from sampan.scheduler.profile import Profile

MOST_CHANGES, MOST_TRIED = 8, 16  # the latter of each kind


@dataclass(frozen=True, slots=True)
class Change:
    text: str
    nodes: int  # that would do


def changes(pod: PodShape, nodes: Snapshot, profile: Profile) -> list[Change]:
    if not len(nodes) or refused_beforehand(pod, nodes, profile) is not None:
        return []
    found: list[Change] = []
    for text, other in (
        *_smaller(pod, nodes, profile),
        *_more_tolerant(pod, nodes),
        *_less_choosy(pod),
    ):
        count = _fitting(other, nodes, profile)
        if count:
            found.append(Change(text, count))
    found.sort(key=lambda item: -item.nodes)
    return found[:MOST_CHANGES]


def amount_text(name: str, amount: int) -> str:
    if name == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(amount)


def _smaller(pod: PodShape, nodes: Snapshot, profile: Profile) -> list[tuple[str, PodShape]]:
    """One request lowered to what the roomiest node has left, where nothing else is in the way."""
    found = []
    for name, wanted in pod.usage.requests[:MOST_TRIED]:
        without = _requesting(pod, name, None)
        feasible, _ = filter_nodes(without, nodes, profile)
        allocatable = nodes.allocatable.get(name)
        if not feasible.any() or allocatable is None:
            continue
        left = int((allocatable - nodes.requested[name])[feasible].max())
        left = _round(name, left)
        if 0 < left < wanted:
            text = f"lower {name} request to {amount_text(name, left)}"
            found.append((text, _requesting(pod, name, left)))
        elif left <= 0:
            found.append((f"request no {name}", without))
    return found


def _more_tolerant(pod: PodShape, nodes: Snapshot) -> list[tuple[str, PodShape]]:
    found = {}
    for taints in islice(nodes.taint_sets.values(), MOST_TRIED):
        keeping = [
            taint
            for taint in taints
            if taint.effect in (NO_SCHEDULE, NO_EXECUTE)
            and not any(toleration.tolerates(taint) for toleration in pod.tolerations)
        ]
        if keeping:
            names = [f"{item.key}={item.value}" if item.value else item.key for item in keeping]
            more = tuple(Toleration(item.key, "Equal", item.value, item.effect) for item in keeping)
            tolerant = replace(pod, tolerations=(*pod.tolerations, *more))
            found[f"tolerate {', '.join(sorted(names))}"] = tolerant
    return list(found.items())


def _less_choosy(pod: PodShape) -> list[tuple[str, PodShape]]:
    found: list[tuple[str, PodShape]] = []
    for at, item in enumerate(pod.selector[:MOST_TRIED]):
        rest = Requirements((*pod.selector[:at], *pod.selector[at + 1 :]))
        text = f"drop {item.key}={','.join(item.values)} from nodeSelector"
        found.append((text, replace(pod, selector=rest)))
    if pod.required is not None:
        found.append(("drop the required node affinity", replace(pod, required=None)))
    if pod.usage.ports:
        ports = ", ".join(str(port.port) for port in pod.usage.ports)
        found.append(
            (f"give up host port {ports}", replace(pod, usage=replace(pod.usage, ports=())))
        )
    demands = pod.demands
    if demands.affinity:
        found.append(("drop the required pod affinity", _asking(pod, affinity=())))
    if demands.anti_affinity:
        found.append(("drop the required pod anti-affinity", _asking(pod, anti_affinity=())))
    if any(item.hard for item in demands.spread):
        soft = tuple(replace(item, hard=False) for item in demands.spread)
        found.append(("spread with ScheduleAnyway", _asking(pod, spread=soft)))
    if demands != NO_DEMANDS and len(found) > 1:
        found.append(("ask nothing of other pods", replace(pod, demands=NO_DEMANDS)))
    return found


def _asking(pod: PodShape, **less: object) -> PodShape:
    return replace(pod, demands=replace(pod.demands, **less))  # type: ignore[arg-type]  # fields of PodDemands


def _requesting(pod: PodShape, name: str, amount: int | None) -> PodShape:
    requests = tuple(
        (request, before if request != name else amount)
        for request, before in pod.usage.requests
        if request != name or amount is not None
    )
    return replace(pod, usage=replace(pod.usage, requests=requests))  # type: ignore[arg-type]  # no None is left


def _round(name: str, amount: int) -> int:
    step = 100 if name == CPU else 2**20 if amount > 2**24 else 1
    return amount // step * step or amount


def _fitting(pod: PodShape, nodes: Snapshot, profile: Profile) -> int:
    return int(np.count_nonzero(filter_nodes(pod, nodes, profile)[0]))
