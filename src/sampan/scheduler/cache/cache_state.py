"""Scheduler cache: pods on nodes as the API shows them, and assumed pods.

Job: fold nodes, pods and assumptions into the columns.
Invariant: a pod counts on at most one node; the API's word replaces an assumption.
Invariant: the columns hold exactly the pods that are recorded here.
Owner: the scheduler's loop.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.columns import Columns
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.cluster_events import (
    Event,
    NamespaceChanged,
    NodeAdded,
    NodeChanged,
    NodeGone,
    PodGone,
    PodPlaced,
)
from sampan.scheduler.model.node_info import NodeInfo


@dataclass(frozen=True, slots=True)
class Placed:
    node: str
    pod: AssignedPod
    assumed: bool  # decided here; the API has not confirmed it yet


class CacheState:
    def __init__(self) -> None:
        self._placed: dict[str, Placed] = {}  # by pod uid
        self._on_node: dict[str, dict[str, AssignedPod]] = {}  # node → uid → pod
        self.columns = Columns(
            lambda: ((placed.node, placed.pod) for placed in self._placed.values())
        )
        self._priorities: Counter[int] = Counter()

    def snapshot(self) -> Snapshot:
        return self.columns.snapshot()

    def put_node(self, row: NodeInfo) -> Event | None:
        """The event that this is for waiting pods; None where nothing changed for them."""
        old = self.columns.row(row.name)
        if old == row:
            return None
        self.columns.put_node(row, self._on_node.get(row.name, {}).values())
        return NodeAdded(row) if old is None else NodeChanged(old, row)

    def remove_node(self, name: str) -> Event | None:
        """Its pods stay recorded: the node may come back before they are gone."""
        if self.columns.row(name) is None:
            return None
        self.columns.remove_node(name, self._on_node.get(name, {}).values())
        return NodeGone(name)

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> Event:
        self.columns.put_namespace(name, labels)
        return NamespaceChanged(name)

    def put_pod(self, uid: str, node: str, pod: AssignedPod) -> list[Event]:
        """The API says that the pod is on the node; the events that this is for waiting pods."""
        return self._put(uid, Placed(node, pod, assumed=False))

    def assume(self, uid: str, node: str, pod: AssignedPod) -> None:
        assert uid not in self._placed, uid
        self._put(uid, Placed(node, pod, assumed=True))

    def forget(self, uid: str) -> Event | None:
        """An assumption that did not come true; nothing where the API has confirmed it."""
        placed = self._placed.get(uid)
        if placed is None or not placed.assumed:
            return None
        return self.remove_pod(uid)

    def remove_pod(self, uid: str) -> Event | None:
        placed = self._placed.pop(uid, None)
        if placed is None:
            return None
        self.columns.subtract(placed.node, placed.pod)
        there = self._on_node[placed.node]
        del there[uid]
        if not there:
            del self._on_node[placed.node]
        self._count(placed.pod.priority, -1)
        return PodGone(placed.pod, placed.node)

    def node_of(self, uid: str) -> str | None:
        placed = self._placed.get(uid)
        return placed.node if placed is not None else None

    def pod(self, uid: str) -> AssignedPod | None:
        placed = self._placed.get(uid)
        return placed.pod if placed is not None else None

    def assumed(self) -> int:
        return sum(item.assumed for item in self._placed.values())

    def on(self, node: str) -> list[AssignedPod]:
        return list(self._on_node.get(node, {}).values())

    def any_below(self, priority: int) -> bool:
        """Whether a pod of a lower priority is on some node."""
        return any(item < priority for item in self._priorities)

    def __len__(self) -> int:
        return len(self._placed)

    def _put(self, uid: str, placed: Placed) -> list[Event]:
        before = self._placed.get(uid)
        if placed.pod.uid != uid:
            placed = replace(placed, pod=replace(placed.pod, uid=uid))
        if before is not None and (before.node, before.pod) == (placed.node, placed.pod):
            self._placed[uid] = placed
            self._on_node[placed.node][uid] = placed.pod
            self.columns.table.refresh(placed.pod)
            return [PodPlaced(placed.pod, placed.node)] if before.assumed else []
        gone = self.remove_pod(uid)
        self._placed[uid] = placed
        self._on_node.setdefault(placed.node, {})[uid] = placed.pod
        self._count(placed.pod.priority, 1)
        self.columns.add(placed.node, placed.pod)
        new = PodPlaced(placed.pod, placed.node)
        if before is None or gone is None or _only_terminates(before, placed):
            return [new]  # one that begins to terminate frees nothing yet
        return [gone, new]

    def _count(self, priority: int, by: int) -> None:
        self._priorities[priority] += by
        if not self._priorities[priority]:
            del self._priorities[priority]


def _only_terminates(before: Placed, after: Placed) -> bool:
    changed = replace(before.pod, terminating=after.pod.terminating)
    return (before.node, changed) == (after.node, after.pod)
