"""node_collector_evictions_total: evictions of a node's pods, by zone.

Job: count the writes that gave a node a taint which evicts, as upstream counts them.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, labels_of
from sampan.api.resources import NODES
from sampan.api.rules.nodes import taints_of
from sampan.controllers.actions import Outcome, Patch, answered
from sampan.controllers.controller import Caches, Counting, Key, Note
from sampan.core.metrics import Metrics

EVICTING = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


def node_counting(metrics: Metrics) -> Counting:
    evictions = metrics.counter(
        "node_collector_evictions_total",
        "Number of Node evictions that happened since current instance of NodeController started.",
        ("zone",),
    )

    def counting(caches: Caches, key: Key) -> Note | None:
        before = caches(NODES).get(key) if isinstance(key, str) else None
        if before is None:
            return None
        zone = zone_key(before)
        evictions.add(zone, by=0.0)  # a zone is shown before anything happens in it

        def note(outcomes: Sequence[Outcome], _took: float) -> None:
            for node in answered(outcomes, Patch, NODES):
                if evicting(node) - evicting(before):
                    evictions.add(zone)

        return note

    return counting


def evicting(node: Obj) -> set[str]:
    taints = (taint for taint in taints_of(node) if taint.get("effect") == "NoExecute")
    return {taint["key"] for taint in taints} & EVICTING


def zone_key(node: Obj) -> str:
    """As upstream names it; empty where the node is in none."""
    labels = labels_of(node)
    region = labels.get("topology.kubernetes.io/region", "")
    zone = labels.get("topology.kubernetes.io/zone", "")
    return f"{region}:\x00:{zone}" if region or zone else ""
