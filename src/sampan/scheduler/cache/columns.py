"""Nodes and what their pods take, as numpy columns, kept up to date change by change.

Job: apply one node or one pod's usage in time proportional to that change; hand out snapshots.
Invariant: `requested` of a node is the sum over the pods on it, at every moment.
Invariant: rows are dense: removing a node moves the last one into its place.
Owner: CacheState; readers get a Snapshot.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from sampan.api.rules.node_selectors import whole_number
from sampan.api.rules.tolerations import Taint
from sampan.core.bounded import Bounded
from sampan.scheduler.cache.pod_columns import PodColumns
from sampan.scheduler.cache.pod_table import PodTable
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.devices.device_allocation import DeviceAllocation
from sampan.scheduler.model.arrays import ABSENT, BoolArray, IntArray, LabelNumbers
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.node_info import NodeInfo
from sampan.scheduler.model.volumes import Volumes
from sampan.scheduler.model.workloads import Workloads

MOST_LAZY = 256  # columns that are kept only because a pod once asked for them
MOST_TOUCHED = 4096
_FIRST_CAPACITY = 16


class Columns:
    def __init__(self, assigned_pods: Callable[[], Iterable[tuple[str, AssignedPod]]]) -> None:
        """`assigned_pods`: every pod with its node's name, for counts that are asked for late."""
        self._assigned_pods = assigned_pods
        self.generation = 0  # grows with every change
        self.structure = 0  # grows when nodes or namespaces change, not when pods come and go
        self.touched = Touched()
        self.table = PodTable()
        self.volumes = Volumes()
        self.workloads = Workloads()
        self.devices = DeviceAllocation()
        self._rows: list[NodeInfo] = []
        self._at: dict[str, int] = {}
        self._capacity = _FIRST_CAPACITY
        self._allocatable: dict[str, IntArray] = {}
        self._requested: dict[str, IntArray] = {}
        self._scored_cpu = self._zeros()
        self._scored_memory = self._zeros()
        self._pods = self._zeros()
        self._allowed_pods = self._zeros()
        self._unschedulable: BoolArray = np.zeros(self._capacity, np.bool_)
        self._taint_set = self._zeros()
        self._taint_sets = _TaintSets()
        self._ports: dict[tuple[str, int], dict[str, dict[str, int]]] = {}
        self._labels = _Labels()
        self._label_uses: Counter[str] = Counter()  # nodes by the keys of their labels
        self._numbers: Bounded[str, tuple[int, LabelNumbers]] = Bounded(MOST_LAZY)
        self._without_label: IntArray = np.full(self._capacity, ABSENT, np.int64)
        self._label_columns = LazyColumns(self._labels.cell)
        self._image_columns = LazyColumns(lambda row, name: row.images.get(name, 0))
        self._feature_columns = LazyColumns(lambda row, name: name in row.features)
        self._pod_columns = PodColumns(lambda: self._known(assigned_pods()), self._capacity)
        self._snapshot: Snapshot | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def put_node(self, row: NodeInfo, placed: Iterable[AssignedPod]) -> None:
        """A node that is new or changed; `placed` is read only for a new one."""
        self._restructured()
        at = self._at.get(row.name)
        if at is not None:
            self._taint_sets.drop(int(self._taint_set[at]))
            self._count_labels(self._rows[at], -1)
            self._rows[at] = row
            self._write_node(at, row)
            return
        self._know_resources(row)  # before its own pods count
        at = len(self._rows)
        if at == self._capacity:
            self._grow()
        self._rows.append(row)
        self._at[row.name] = at
        self._write_node(at, row)
        for assigned in placed:
            self._take(at, assigned, 1)

    def remove_node(self, name: str, placed: Iterable[AssignedPod]) -> None:
        at = self._at.get(name)
        if at is None:
            return
        self._restructured()
        for assigned in placed:
            self._take(at, assigned, -1)
        self._taint_sets.drop(int(self._taint_set[at]))
        self._count_labels(self._rows[at], -1)
        del self._at[name]
        last = len(self._rows) - 1
        if at != last:
            self._rows[at] = self._rows[last]
            self._at[self._rows[at].name] = at
            self.table.moved(last, at)
        for column in self._all_columns():
            column[at] = column[last]
            column[last] = 0
        self._rows.pop()

    def add(self, node: str, assigned: AssignedPod) -> None:
        """A pod on a node; nothing where the node is not there (its pods come with it later)."""
        at = self._at.get(node)
        if at is not None:
            self.generation += 1
            self.touched.add(at)
            self._take(at, assigned, 1)

    def subtract(self, node: str, assigned: AssignedPod) -> None:
        at = self._at.get(node)
        if at is not None:
            self.generation += 1
            self.touched.add(at)
            self._take(at, assigned, -1)

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        self._restructured()
        self._pod_columns.put_namespace(name, labels)

    def changed_beside(self) -> None:
        """Storage or devices are others now: what was worked out may be outdated."""
        self.generation += 1

    def row(self, name: str) -> NodeInfo | None:
        at = self._at.get(name)
        return None if at is None else self._rows[at]

    def snapshot(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = self._taken()
        return self._snapshot

    def _taken(self) -> Snapshot:
        count = len(self._rows)
        return Snapshot(
            rows=self._rows,
            at=self._at,
            allocatable={name: _view(item, count) for name, item in self._allocatable.items()},
            requested={name: _view(item, count) for name, item in self._requested.items()},
            scored_cpu=_view(self._scored_cpu, count),
            scored_memory=_view(self._scored_memory, count),
            pods=_view(self._pods, count),
            allowed_pods=_view(self._allowed_pods, count),
            unschedulable=_bool_view(self._unschedulable, count),
            taint_set=_view(self._taint_set, count),
            taint_sets=self._taint_sets.by_id,
            ports=self._ports,
            label=lambda key: _view(self._label_column(key), count),
            has_label=self._label_uses.__contains__,
            label_value=self._labels.id_of,
            label_numbers=self._label_numbers,
            image_bytes=lambda name: _view(self._image_columns.column(name, self._rows), count),
            pod_count=lambda kind: _view(self._pod_columns.count(kind), count),
            carried=self._pod_columns.carried_towards,
            carriers=lambda term: _view(self._pod_columns.carried[term], count),
            namespaces=self._pod_columns.namespaces,
            volumes=self.volumes,
            claim_uses=self._pod_columns.claim_uses,
            claims_on=self._pod_columns.claims_on,
            disks_on=self._pod_columns.disks_on,
            workloads=self.workloads,
            devices=self.devices,
            declares=lambda name: _view(self._feature_columns.column(name, self._rows), count),
        )

    def _known(
        self, assigned_pods: Iterable[tuple[str, AssignedPod]]
    ) -> Iterator[tuple[int, AssignedPod]]:
        for node, assigned in assigned_pods:
            at = self._at.get(node)
            if at is not None:
                yield at, assigned

    def _restructured(self) -> None:
        self.generation += 1
        self.structure += 1
        self._snapshot = None

    def _write_node(self, at: int, row: NodeInfo) -> None:
        self._know_resources(row)
        for name, column in self._allocatable.items():
            column[at] = row.allocatable.get(name, 0)
        self._allowed_pods[at] = row.allowed_pods
        self._unschedulable[at] = row.unschedulable
        self._taint_set[at] = self._taint_sets.take(row.taints)
        self._count_labels(row, 1)
        if self._labels.overgrown(len(self._rows)):
            self._labels.clear()
            self._label_columns.clear()
        self._label_columns.put(at, row)
        self._image_columns.put(at, row)
        self._feature_columns.put(at, row)

    def _count_labels(self, row: NodeInfo, sign: int) -> None:
        for key in row.labels:
            self._label_uses[key] += sign
            if not self._label_uses[key]:
                del self._label_uses[key]

    def _label_column(self, key: str) -> IntArray:
        """A pod may name thousands of labels; a column is there for those that a node has."""
        if key not in self._label_uses:
            return self._without_label
        return self._label_columns.column(key, self._rows)

    def _label_numbers(self, key: str) -> LabelNumbers:
        found = self._numbers.get(key)
        if found is None or found[0] != self.structure:
            read = [whole_number(row.labels.get(key, "")) for row in self._rows]
            numbers = np.array([number or 0 for number in read], np.int64)
            there = np.array([number is not None for number in read], np.bool_)
            found = self._numbers[key] = (self.structure, (numbers, there))
        return found[1]

    def _take(self, at: int, assigned: AssignedPod, sign: int) -> None:
        usage = assigned.usage
        for name, amount in usage.requests:
            column = self._requested.get(name)
            if column is not None:  # no node has it: nothing can be short of it
                column[at] += sign * amount
        self._scored_cpu[at] += sign * usage.scored_cpu
        self._scored_memory[at] += sign * usage.scored_memory
        self._pods[at] += sign
        for port in usage.ports:
            self._hold((port.protocol, port.port), self._rows[at].name, port.address, sign)
        self._pod_columns.take(at, assigned, sign)
        if assigned.claims:
            self._pod_columns.mount(self._rows[at].name, assigned.claims, sign)
        if assigned.disks:
            self._pod_columns.attach(self._rows[at].name, assigned.disks, sign)
        if sign > 0:
            self.table.put(at, assigned)
        else:
            self.table.remove(assigned)

    def _hold(self, port: tuple[str, int], node: str, address: str, sign: int) -> None:
        nodes = self._ports.setdefault(port, {})
        addresses = nodes.setdefault(node, {})
        addresses[address] = addresses.get(address, 0) + sign
        if not addresses[address]:
            del addresses[address]
            if not addresses:
                del nodes[node]
                if not nodes:
                    del self._ports[port]

    def _know_resources(self, row: NodeInfo) -> None:
        """A column for each resource that a node has; pods may name any number of others."""
        new = [name for name in row.allocatable if name not in self._allocatable]
        if not new:
            return
        for name in new:
            self._allocatable[name] = self._zeros()
            self._requested[name] = self._zeros()
        self._snapshot = None
        for at, assigned in self._known(self._assigned_pods()):
            for name, amount in assigned.usage.requests:
                if name in new:
                    self._requested[name][at] += amount

    def _zeros(self) -> IntArray:
        return np.zeros(self._capacity, np.int64)

    def _all_columns(self) -> list[IntArray | BoolArray]:
        return [
            *self._allocatable.values(), *self._requested.values(), self._scored_cpu,
            self._scored_memory, self._pods, self._allowed_pods, self._unschedulable,
            self._taint_set, *self._label_columns.arrays(), *self._image_columns.arrays(),
            *self._feature_columns.arrays(), *self._pod_columns.arrays(),
        ]  # fmt: skip

    def _grow(self) -> None:
        self._capacity *= 2
        for columns in (self._allocatable, self._requested):
            for name, column in columns.items():
                columns[name] = _grown(column, self._capacity)
        self._scored_cpu = _grown(self._scored_cpu, self._capacity)
        self._scored_memory = _grown(self._scored_memory, self._capacity)
        self._pods = _grown(self._pods, self._capacity)
        self._allowed_pods = _grown(self._allowed_pods, self._capacity)
        self._unschedulable = np.concatenate(
            [self._unschedulable, np.zeros(self._capacity // 2, np.bool_)]
        )
        self._taint_set = _grown(self._taint_set, self._capacity)
        self._without_label = np.full(self._capacity, ABSENT, np.int64)
        self._label_columns.grow(self._capacity)
        self._image_columns.grow(self._capacity)
        self._feature_columns.grow(self._capacity)
        self._pod_columns.grow(self._capacity)


class Touched:
    """Which nodes had pods come or go, as a log with positions; the oldest entries are dropped."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._dropped = 0

    @property
    def position(self) -> int:
        return self._dropped + len(self._rows)

    def add(self, at: int) -> None:
        self._rows.append(at)
        if len(self._rows) > MOST_TOUCHED:
            half = MOST_TOUCHED // 2
            del self._rows[:half]
            self._dropped += half

    def forget_since(self, position: int) -> None:
        """What was done since then was undone."""
        del self._rows[max(0, position - self._dropped) :]

    def since(self, position: int) -> list[int] | None:
        """None: it is too long ago to say."""
        if position < self._dropped:
            return None
        return self._rows[position - self._dropped :]


class LazyColumns:
    """Columns made when a pod first asks for their key, then kept up to date; the oldest go."""

    def __init__(self, cell: Callable[[NodeInfo, str], int]) -> None:
        self._cell = cell
        self._columns: Bounded[str, IntArray] = Bounded(MOST_LAZY)
        self._capacity = _FIRST_CAPACITY

    def column(self, key: str, rows: list[NodeInfo]) -> IntArray:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = np.zeros(self._capacity, np.int64)
            column[: len(rows)] = [self._cell(row, key) for row in rows]
        return column

    def put(self, at: int, row: NodeInfo) -> None:
        for key, column in self._columns.items():
            column[at] = self._cell(row, key)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for key, column in self._columns.items():
            self._columns[key] = _grown(column, capacity)

    def arrays(self) -> Iterable[IntArray]:
        return self._columns.values()

    def clear(self) -> None:
        self._columns.clear()


class _Labels:
    """Label values as numbers. They are never forgotten one by one; when nodes have come and gone
    for long enough, all are, and the columns are made anew."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []

    def cell(self, row: NodeInfo, key: str) -> int:
        value = row.labels.get(key)
        if value is None:
            return ABSENT
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = len(self._texts)
            self._texts.append(value)
        return found

    def id_of(self, value: str) -> int:
        """A number that no node has, where no node has the value."""
        return self._ids.get(value, ABSENT - 1)

    def overgrown(self, nodes: int) -> bool:
        return len(self._texts) > 4096 + 16 * nodes

    def clear(self) -> None:
        self._ids.clear()
        self._texts.clear()


class _TaintSets:
    """Sets of taints as numbers, each kept while a node has it."""

    def __init__(self) -> None:
        self.by_id: dict[int, frozenset[Taint]] = {}
        self._ids: dict[frozenset[Taint], int] = {}
        self._uses: dict[int, int] = {}
        self._free: list[int] = []

    def take(self, taints: frozenset[Taint]) -> int:
        found = self._ids.get(taints)
        if found is None:
            found = self._free.pop() if self._free else len(self._ids)
            self._ids[taints] = found
            self.by_id[found] = taints
            self._uses[found] = 0
        self._uses[found] += 1
        return found

    def drop(self, taint_set: int) -> None:
        self._uses[taint_set] -= 1
        if not self._uses[taint_set]:
            del self._uses[taint_set]
            del self._ids[self.by_id.pop(taint_set)]
            self._free.append(taint_set)


def _grown(column: IntArray, capacity: int) -> IntArray:
    return np.concatenate([column, np.zeros(capacity - len(column), np.int64)])


def _view(column: IntArray, count: int) -> IntArray:
    view = column[:count]
    view.flags.writeable = False
    return view


def _bool_view(column: BoolArray, count: int) -> BoolArray:
    view = column[:count]
    view.flags.writeable = False
    return view
