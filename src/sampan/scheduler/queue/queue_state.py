"""Scheduling queue: active, backoff and unschedulable pods.

Job: fold arrivals, attempts, refusals and events into the queue. No clock, no I/O: `now` is given.
Invariant: a pod is in exactly one place: active, backoff, unschedulable, gated or in flight.
Invariant: active pods leave by priority, then by how long they wait; those that are long to decide
    about come after all other active ones, and wait for a while instead of for events.
Invariant: an event that comes while a pod is in flight counts when the pod is refused.
Owner: the scheduler's loop.
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from itertools import chain, count
from typing import NamedTuple

from sampan.core.backoff import Backoff
from sampan.core.fast_dataclass import dataclass, replace
from sampan.scheduler.model.cluster_events import Event
from sampan.scheduler.model.pod_info import PodInfo, PodShape
from sampan.scheduler.queue.requeue import may_help

BACKOFF = Backoff(first_seconds=1.0, cap_seconds=10.0)
LONGEST_UNSCHEDULABLE_SECONDS = 300.0
LONG_POD_SECONDS = 30.0  # which events may help one of thousands of terms is not worked out


class Place(Enum):
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


@dataclass(frozen=True, slots=True)
class Waiting:
    """One pod of the queue."""

    pod: PodInfo
    place: Place
    since: float  # in this place
    first_seen: float  # ready to be scheduled for the first time: not gated
    attempts: int = 0
    refusals: int = 0  # in a row; they make the backoff longer
    errors: int = 0  # in a row, likewise
    rules: frozenset[str] = frozenset()  # what refused it last
    events_before: int = 0  # in flight: how many events had been seen when it left
    waited: float = 0.0  # in flight: seconds in the place that it left


@dataclass(frozen=True, slots=True)
class Alike:
    """What refused pods have in common that an event helps all alike."""

    shape: PodShape
    rules: frozenset[str]
    priority: int


Helped = Callable[[Event, Alike, Collection[str]], Collection[str]]


def all_or_none(event: Event, alike: Alike, uids: Collection[str]) -> Collection[str]:
    return uids if may_help(event, alike.shape, alike.rules) else ()


class QueueState:
    def __init__(self, helped: Helped = all_or_none, backoff: Backoff = BACKOFF) -> None:
        """`helped`: of pods that wait alike, those for whom an event is worth another attempt."""
        self._helped, self._delays = helped, backoff
        self._pods: dict[str, Waiting] = {}
        # In the order of their coming: of those in flight, the first has missed the most events.
        self._in: dict[Place, dict[str, None]] = {place: {} for place in Place}
        # Unschedulable pods that an event helps all alike, or not at all.
        self._alike: dict[Alike, set[str]] = {}
        self._number: dict[str, int] = {}  # grows with each placement
        self._numbers = count()
        self._active = _Heap(self._number)  # by priority and age
        self._long = _Heap(self._number)  # likewise, those that are long to decide about
        self._backoff = _Heap(self._number)  # by end
        self._called_back = _Heap(self._number)  # likewise, without those that met an error
        self._unschedulable = _Heap(self._number)  # by the end of the longest wait
        self._events: deque[Event] = deque()  # seen while something was in flight
        self._dropped_events = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> Waiting | None:
        return self._pods.get(uid)

    def count(self, place: Place) -> int:
        return len(self._in[place])

    def refused_by(self) -> Counter[tuple[str, str]]:
        """How many unschedulable pods each rule of each profile has refused."""
        waiting = (self._pods[uid] for uid in self._in[Place.UNSCHEDULABLE])
        return Counter((rule, item.pod.scheduler) for item in waiting for rule in item.rules)

    def put(self, pod: PodInfo, now: float) -> None:
        """A pod that is new, or changed."""
        known = self._pods.get(pod.uid)
        if known is None:
            place = Place.GATED if pod.gates else Place.ACTIVE
            self._place(Waiting(pod, place, now, now))
            return
        changed = known.pod.shape != pod.shape or known.pod.gates != pod.gates
        known = replace(known, pod=pod)
        match known.place:
            case Place.GATED if not pod.gates:
                self._place(replace(known, place=Place.ACTIVE, since=now, first_seen=now))
            case Place.UNSCHEDULABLE if changed:
                self._retry(known, now)
            case Place.ACTIVE | Place.UNSCHEDULABLE:
                self._place(known)  # its priority may be another
            case Place.IN_FLIGHT if changed:
                # Another attempt is due, whatever this one finds.
                self._pods[pod.uid] = replace(known, rules=frozenset({_CHANGED}))
            case _:
                self._pods[pod.uid] = known

    def remove(self, uid: str) -> None:
        known = self._pods.pop(uid, None)
        if known is not None:
            self._leave(known)
            del self._number[uid]
            self._drop_events()

    def pop(self, now: float) -> Waiting | None:
        """The next pod to try; it is in flight until refused, failed or removed. Where nobody is
        active, those that an event has called back need not wait out their backoff."""
        self.flush(now)
        head = self._next()
        if head is None:
            return None
        known = self._pods[head.uid]
        seen = self._dropped_events + len(self._events)
        flying = replace(
            known, place=Place.IN_FLIGHT, since=now, attempts=known.attempts + 1,
            rules=frozenset(), events_before=seen, waited=now - known.since,
        )  # fmt: skip
        self._place(flying)
        return flying

    def refused(self, uid: str, rules: frozenset[str], now: float) -> None:
        """No node will have it: it waits for an event that may help, if none came meanwhile."""
        known = self._pods.get(uid)
        if known is None or known.place is not Place.IN_FLIGHT:
            return
        missed = _CHANGED in known.rules
        if not missed and not known.pod.shape.is_long:
            alike = Alike(known.pod.shape, rules, known.pod.priority)
            events = self._events_since(known)
            missed = any(self._helped(event, alike, (uid,)) for event in events)
        known = replace(known, refusals=known.refusals + 1, errors=0, rules=rules, since=now)
        if missed:
            self._retry(known, now)
        else:
            self._place(replace(known, place=Place.UNSCHEDULABLE))

    def failed(self, uid: str, now: float) -> None:
        """The attempt failed for a reason that is not the pod's: again, after a while."""
        known = self._pods.get(uid)
        if known is None or known.place is not Place.IN_FLIGHT:
            return
        known = replace(known, errors=known.errors + 1, rules=frozenset(), since=now)
        self._place(replace(known, place=Place.BACKOFF))

    def activate(self, uid: str, now: float) -> None:
        """Try it again at once, whatever it waits for."""
        known = self._pods.get(uid)
        if known is not None and known.place in (Place.UNSCHEDULABLE, Place.BACKOFF):
            self._place(replace(known, place=Place.ACTIVE, since=now))

    def event(self, event: Event, now: float) -> None:
        if self._in[Place.IN_FLIGHT]:
            self._events.append(event)
        helped = [
            sorted(self._helped(event, alike, uids), key=self._number.__getitem__)
            for alike, uids in self._alike.items()
        ]
        for uid in chain.from_iterable(helped):
            self._retry(self._pods[uid], now)

    def flush(self, now: float) -> None:
        """Whose backoff is over becomes active; who was unschedulable for long tries again."""
        while (head := self._backoff.head()) is not None and head.order[0] <= now:
            known = self._pods[head.uid]
            self._place(replace(known, place=Place.ACTIVE, since=now))
        while (head := self._unschedulable.head()) is not None and head.order[0] <= now:
            self._retry(self._pods[head.uid], now)

    def next_flush(self) -> float | None:
        """When `flush` will have something to do; None: not before something else happens."""
        heads = (self._backoff.head(), self._unschedulable.head())
        return min((head.order[0] for head in heads if head is not None), default=None)

    def has_next(self) -> bool:
        return self._next() is not None

    def _next(self) -> "_Entry | None":
        return self._active.head() or self._long.head() or self._called_back.head()

    def check(self) -> None:
        """The invariants, for tests."""
        for uid, known in self._pods.items():
            assert [place for place in Place if uid in self._in[place]] == [known.place], known
        assert sum(map(len, self._in.values())) == len(self._pods)
        assert set(self._number) == set(self._pods)
        grouped = sorted(uid for uids in self._alike.values() for uid in uids)
        refused = self._in[Place.UNSCHEDULABLE]
        assert grouped == sorted(uid for uid in refused if not self._pods[uid].pod.shape.is_long)
        flying = [self._pods[uid].events_before for uid in self._in[Place.IN_FLIGHT]]
        assert flying == sorted(flying)

    def _retry(self, known: Waiting, now: float) -> None:
        until = self._until(known)
        place = Place.ACTIVE if until <= now else Place.BACKOFF
        since = now if place is Place.ACTIVE else known.since
        self._place(replace(known, place=place, since=since))

    def _place(self, known: Waiting) -> None:
        uid = known.pod.uid
        before = self._pods.get(uid)
        if before is not None:
            self._leave(before)
        self._pods[uid] = known
        self._in[known.place][uid] = None
        self._number[uid] = next(self._numbers)
        match known.place:
            case Place.ACTIVE:
                order = (-known.pod.priority,) if known.pod.order is None else known.pod.order
                heap = self._long if known.pod.shape.is_long else self._active
                heap.push((*order, known.since), uid)
            case Place.BACKOFF:
                self._backoff.push((self._until(known),), uid)
                if not known.errors and not known.pod.shape.is_long:
                    self._called_back.push((self._until(known),), uid)
            case Place.UNSCHEDULABLE:
                long = known.pod.shape.is_long
                longest = LONG_POD_SECONDS if long else LONGEST_UNSCHEDULABLE_SECONDS
                self._unschedulable.push((known.since + longest,), uid)
                if not long:
                    self._alike.setdefault(_alike(known), set()).add(uid)
            case _:
                pass
        if before is not None and before.place is Place.IN_FLIGHT:
            self._drop_events()

    def _until(self, known: Waiting) -> float:
        return known.since + self._delays.delay(known.errors or known.refusals)

    def _leave(self, known: Waiting) -> None:
        uid = known.pod.uid
        del self._in[known.place][uid]
        if known.place is Place.UNSCHEDULABLE and not known.pod.shape.is_long:
            key = _alike(known)
            self._alike[key].discard(uid)
            if not self._alike[key]:
                del self._alike[key]

    def _events_since(self, known: Waiting) -> Iterator[Event]:
        skip = known.events_before - self._dropped_events
        return (event for at, event in enumerate(self._events) if at >= skip)

    def _drop_events(self) -> None:
        """Forget the events that every pod in flight was sent after."""
        first = next(iter(self._in[Place.IN_FLIGHT]), None)
        newest = self._dropped_events + len(self._events)
        oldest = newest if first is None else self._pods[first].events_before
        while self._dropped_events < oldest:
            self._events.popleft()
            self._dropped_events += 1


class _Entry(NamedTuple):
    order: tuple[float, ...]
    number: int
    uid: str


class _Heap:
    """Pods in some order. Entries are never taken out of the middle: one is outdated when the pod
    was placed anew since, which its number tells; when most are, the heap is made anew."""

    def __init__(self, newest: dict[str, int]) -> None:
        self._newest = newest
        self._entries: list[_Entry] = []

    def push(self, order: tuple[float, ...], uid: str) -> None:
        heapq.heappush(self._entries, _Entry(order, self._newest[uid], uid))
        if len(self._entries) > 2 * len(self._newest) + 64:
            self._entries = [entry for entry in self._entries if self._is_valid(entry)]
            heapq.heapify(self._entries)

    def head(self) -> _Entry | None:
        while self._entries and not self._is_valid(self._entries[0]):
            heapq.heappop(self._entries)
        return self._entries[0] if self._entries else None

    def _is_valid(self, entry: _Entry) -> bool:
        return self._newest.get(entry.uid) == entry.number


_CHANGED = "the pod itself changed"


def _alike(known: Waiting) -> Alike:
    return Alike(known.pod.shape, known.rules, known.pod.priority)
