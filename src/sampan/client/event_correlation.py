"""Which of many events are written, and how: aggregated, counted up, or dropped as spam.

Job: fold one event that happened into Write(event to create or count up) or nothing. No I/O, no
    clock; as client-go's EventCorrelator, with its numbers.
Invariant: memory is bounded: the least recently used keys are forgotten, and what is so old that
    it makes no difference.
Invariant: one object of one source gets at most BURST events at once, then one per REFILL_SECONDS.
Owner: one EventRecorder.
"""

from dataclasses import replace
from typing import TypeVar

from sampan.api.objects import Obj
from sampan.core.bounded import Recent
from sampan.core.fast_dataclass import dataclass

REMEMBERED = 4096
BURST = 25
REFILL_SECONDS = 300.0
SIMILAR_EVENTS = 10  # this many different messages with one reason …
SIMILAR_SECONDS = 600.0  # … within this time are combined into one
COMBINED = "(combined from similar events): "

Key = tuple[str, ...]
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Write:
    """`event.count` of 1 is a creation; more counts an existing event up."""

    event: Obj
    key: Key


@dataclass(frozen=True, slots=True)
class _Similar:
    messages: frozenset[str]
    last_seen: float


@dataclass(frozen=True, slots=True)
class _Written:
    count: int
    first_timestamp: str
    name: str


@dataclass(frozen=True, slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class EventCorrelator:
    def __init__(self) -> None:
        self._similar: Recent[Key, _Similar] = Recent(REMEMBERED)
        self._written: Recent[Key, _Written] = Recent(REMEMBERED)
        self._buckets: Recent[Key, _Bucket] = Recent(REMEMBERED)

    def correlate(self, event: Obj, now: float) -> Write | None:
        """None where the event is spam. `event` is not changed."""
        self._forget_old(now)
        key, message = self._aggregate(event, now)
        counted = self._count({**event, "message": message}, key)
        return Write(counted, key) if self._is_allowed(_source_key(event), now) else None

    def stored(self, key: Key, event: Obj) -> None:
        """What the server has now: the next one of its kind counts from here."""
        meta = event["metadata"]
        written = _Written(event.get("count") or 1, event["firstTimestamp"], meta["name"])
        self._written[key] = written

    def _forget_old(self, now: float) -> None:
        """Other messages than lately are new ones, and a bucket that is full again is as good as
        none."""
        while (
            self._similar and now - next(iter(self._similar.values())).last_seen > SIMILAR_SECONDS
        ):
            self._similar.popitem(last=False)
        while self._buckets and _level(next(iter(self._buckets.values())), now) >= BURST:
            self._buckets.popitem(last=False)

    def _aggregate(self, event: Obj, now: float) -> tuple[Key, str]:
        message: str = event["message"]
        full = (*_source_key(event), event["type"], event["reason"])
        known = self._similar.get(full)
        if known is None or now - known.last_seen > SIMILAR_SECONDS:
            known = _Similar(frozenset(), now)
        known = _Similar(known.messages | {message}, now)
        if len(known.messages) < SIMILAR_EVENTS:
            self._similar[full] = known
            return (*full, message), message
        # As upstream: drop one, so that the set stays at the limit while the burst goes on.
        kept = frozenset(list(known.messages)[: SIMILAR_EVENTS - 1])
        self._similar[full] = replace(known, messages=kept)
        return full, COMBINED + message

    def _count(self, event: Obj, key: Key) -> Obj:
        before = self._written.get(key)
        if before is not None:
            meta = {**event["metadata"], "name": before.name}
            event = {
                **event,
                "metadata": meta,
                "count": before.count + 1,
                "firstTimestamp": before.first_timestamp,
            }
        self.stored(key, event)
        return event

    def _is_allowed(self, source: Key, now: float) -> bool:
        tokens = _level(self._buckets.get(source) or _Bucket(float(BURST), now), now)
        allowed = tokens >= 1.0
        self._buckets[source] = _Bucket(tokens - 1.0 if allowed else tokens, now)
        return allowed


def _level(bucket: _Bucket, now: float) -> float:
    return min(float(BURST), bucket.tokens + (now - bucket.filled_at) / REFILL_SECONDS)


def _source_key(event: Obj) -> Key:
    source, about = event["source"], event["involvedObject"]
    return (
        source.get("component", ""),
        source.get("host", ""),
        about.get("kind", ""),
        about.get("namespace", ""),
        about.get("name", ""),
        about.get("fieldPath", ""),
        about.get("uid", ""),
        about.get("apiVersion", ""),
    )
