"""Pods as columns: how many of a kind are on each node, kept up to date pod by pod.

Job: counts per node of pods that a selector matches, and of pods that carry a term.
Invariant: a count is what counting all pods anew would give.
Invariant: a pod is compared with the selectors that ask for one of its labels, not with all.
Owner: Columns.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from sampan.core.bounded import Bounded
from sampan.scheduler.model.arrays import IntArray
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.disks import Disk
from sampan.scheduler.model.pod_terms import Carried, Kind

MOST_COUNTS = 1024  # selectors that are counted only because a pod once asked
MOST_WEIGHT = 32  # selectors and requirements of one of these
MOST_NAMED = 64  # namespaces that a term is found by; one of more is asked by all


Label = tuple[str, str]
Residents = Callable[[], Iterable[tuple[int, AssignedPod]]]  # (node's index, pod)


class PodColumns:
    def __init__(self, assigned_pods: Residents, capacity: int) -> None:
        self._assigned_pods = assigned_pods
        self._capacity = capacity
        self._counts: Bounded[Kind, IntArray] = Bounded(MOST_COUNTS, self._forgotten)
        self._by_label: dict[Label | None, dict[Kind, None]] = {}  # those of _counts
        self.carried: dict[Carried, IntArray] = {}
        self._carriers: dict[Carried, int] = {}
        self._towards: dict[str, dict[Carried, None]] = {}  # by namespace, where few are named
        self._towards_some: dict[Carried, None] = {}  # of any: by labels, or one of many
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.claim_uses: Counter[str] = Counter()
        self.claims_on: dict[str, Counter[str]] = {}  # by node's name
        self.disks_on: dict[str, Counter[Disk]] = {}  # likewise

    def count(self, kind: Kind) -> IntArray:
        """Kept up to date from now on; not so where each pod that comes would pay much for it."""
        column = self._counts.get(kind)
        if column is None:
            column = np.zeros(self._capacity, np.int64)
            if _weight(kind) <= MOST_WEIGHT:
                self._by_label.setdefault(_asked_label(kind), {})[kind] = None
                self._counts[kind] = column
            for at, assigned in self._assigned_pods():
                if self._includes(kind, assigned):
                    column[at] += 1
        return column

    def carried_towards(self, namespace: str) -> Collection[Carried]:
        """The terms that may concern a pod of the namespace."""
        named = self._towards.get(namespace)
        if named is None or not self._towards_some:
            return self._towards_some if named is None else named
        return [*named, *self._towards_some]

    def mount(self, node: str, claims: tuple[str, ...], sign: int) -> None:
        on_node = self.claims_on.setdefault(node, Counter())
        for claim in claims:
            for uses in (self.claim_uses, on_node):
                uses[claim] += sign
                if not uses[claim]:
                    del uses[claim]
        if not on_node:
            del self.claims_on[node]

    def attach(self, node: str, disks: tuple[Disk, ...], sign: int) -> None:
        there = self.disks_on.setdefault(node, Counter())
        for disk in disks:
            there[disk] += sign
            if not there[disk]:
                del there[disk]
        if not there:
            del self.disks_on[node]

    def take(self, at: int, assigned: AssignedPod, sign: int) -> None:
        for label in (None, *assigned.labels):
            for kind in self._by_label.get(label, ()):
                if self._includes(kind, assigned):
                    self._counts[kind][at] += sign
        for term in assigned.carried:
            self._carry(at, term, sign)

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """None: it is gone. What was counted by the labels of namespaces is counted anew."""
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        for kind in [count for count in self._counts if _by_namespace_labels(count)]:
            self._forgotten(kind, self._counts.pop(kind))

    def _forgotten(self, kind: Kind, _column: IntArray) -> None:
        label = _asked_label(kind)
        kinds = self._by_label[label]
        del kinds[kind]
        if not kinds:
            del self._by_label[label]

    def arrays(self) -> Iterable[IntArray]:
        return (*self._counts.values(), *self.carried.values())

    def grow(self, capacity: int) -> None:
        more = np.zeros(capacity - self._capacity, np.int64)
        self._capacity = capacity
        for kind, column in self._counts.items():
            self._counts[kind] = np.concatenate([column, more])
        for term, column in self.carried.items():
            self.carried[term] = np.concatenate([column, more])

    def _carry(self, at: int, term: Carried, sign: int) -> None:
        column = self.carried.get(term)
        if column is None:
            column = self.carried[term] = np.zeros(self._capacity, np.int64)
            self._point(term)
        column[at] += sign
        carriers = self._carriers[term] = self._carriers.get(term, 0) + sign
        if not carriers:
            del self.carried[term], self._carriers[term]
            self._point(term, gone=True)

    def _point(self, term: Carried, *, gone: bool = False) -> None:
        """Which namespaces' pods it concerns."""
        selector = term.term.selector
        if selector.namespace_selector is not None or len(selector.namespaces) > MOST_NAMED:
            terms = {"": self._towards_some}
        else:
            terms = {name: self._towards.setdefault(name, {}) for name in selector.namespaces}
        for name, those in terms.items():
            if not gone:
                those[term] = None
                continue
            those.pop(term, None)
            if name and not those:
                del self._towards[name]

    def _includes(self, kind: Kind, assigned: AssignedPod) -> bool:
        if assigned.terminating and not kind.with_terminating:
            return False
        return kind.includes(
            assigned.namespace,
            self.namespaces.get(assigned.namespace, {}),
            dict(assigned.labels),
        )


def _weight(kind: Kind) -> int:
    """How much there is to compare with each pod."""
    return sum(1 + len(selector.labels or ()) for selector in kind.selectors)


def _asked_label(kind: Kind) -> Label | None:
    """One that every pod of the kind has; None where no single one is asked for."""
    for selector in kind.selectors:
        for requirement in selector.labels or ():
            if requirement.operator == "In" and len(requirement.values) == 1:
                return requirement.key, requirement.values[0]
    return None


def _by_namespace_labels(kind: Kind) -> bool:
    return any(selector.namespace_selector is not None for selector in kind.selectors)
