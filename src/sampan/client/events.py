"""Events: what a part tells the user about an object, kept short and never in the way.

Job: `record(reference(pod), "Normal", "Started", "Started container web")`, written in the
    background by one task: created, counted up, combined or dropped as spam.
Invariant: `record` never waits and never fails; a full queue drops the new event and counts it.
Invariant: a short outage of the API loses nothing that fits the queue.
Invariant: events give way to work: on a busy loop they wait, at most PATIENCE_SECONDS.
Owner: each part has its own recorder, named after its component.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from functools import cached_property

from sampan.api.errors import (
    AlreadyExists,
    ApiError,
    InternalError,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from sampan.api.objects import Obj, meta_of, time_text
from sampan.api.resources import EVENTS
from sampan.client.contract import Client
from sampan.client.event_correlation import EventCorrelator, Write
from sampan.core.backoff import Backoff, with_jitter
from sampan.core.clock import Clock
from sampan.core.flag import Flag
from sampan.core.log import get_logger
from sampan.core.tasks import all_of

log = get_logger(__name__)

QUEUE_BOUND = 1000  # as client-go's broadcaster
AT_ONCE = 16
ATTEMPTS = 12  # as client-go: with the pauses below, an outage of about two minutes is bridged
RENAMES = 32  # of an event whose name is taken
PAUSE = Backoff(first_seconds=0.5, cap_seconds=20.0)
# A turn of the event loop that takes this long has work in it that matters more than an event.
BUSY_SECONDS = 0.003
GIVE_WAY_SECONDS = 0.1
PATIENCE_SECONDS = 5.0
PASSING = (TooManyRequests, InternalError, ServiceUnavailable, Timeout)


def reference(obj: Obj, field_path: str = "") -> Obj:
    """The ObjectReference of `obj`; a field path names a part: `spec.containers{web}`."""
    meta = meta_of(obj)
    about: Obj = {"kind": obj.get("kind", ""), "apiVersion": obj.get("apiVersion", "")}
    for field in ("namespace", "name", "uid", "resourceVersion"):
        if meta.get(field):
            about[field] = meta[field]
    if field_path:
        about["fieldPath"] = field_path
    return about


class EventRecorder:
    def __init__(
        self,
        client: Client,
        component: str,
        *,
        clock: Clock,
        host: str = "",
        rng: random.Random | None = None,
        bound: int = QUEUE_BOUND,
    ) -> None:
        """`bound`: so many may wait; more for a part whose work comes in bursts."""
        self._client, self._clock = client, clock
        self._component, self._host, self._bound = component, host, bound
        self._rng = rng or random.Random()
        self._queue: deque[tuple[float, Write]] = deque()  # since when each waits
        self._wake = Flag()
        self._writing = False
        self._last_nanoseconds = 0
        self.dropped = 0
        self.gather_seconds = 0.0  # so long the first one waits for others, to go with them
        self.begin: Callable[[], None] | None = None  # called with the first one: `run` is needed

    @cached_property
    def _correlator(self) -> EventCorrelator:
        return EventCorrelator()

    def record(
        self,
        about: Obj,
        type: str,  # noqa: A002  # the field's own name
        reason: str,
        message: str,
        *,
        annotations: dict[str, str] | None = None,
    ) -> None:
        """`about` from `reference`; `type` is Normal or Warning; `reason` is one CamelCase word."""
        event = self._event(about, type, reason, message, annotations)
        write = self._correlator.correlate(event, self._clock.now())
        if write is None:
            return
        if len(self._queue) >= self._bound:
            self.dropped += 1
            if self.dropped == 1:
                log.warning("too many events are waiting, dropping", reason=reason)
            return
        self._queue.append((self._clock.monotonic(), write))
        self._wake.set()
        if self.begin is not None:
            begin, self.begin = self.begin, None
            begin()

    async def run(self) -> None:
        """Writes what was recorded, in order, until cancelled."""
        while True:
            while self._queue:
                self._writing = True
                if self.gather_seconds and len(self._queue) < AT_ONCE:
                    await self._clock.sleep(self.gather_seconds)
                await self._give_way()
                await self._write_some()
                self._writing = False
            self._wake.clear()
            await self._wake.wait()

    def idle(self) -> bool:
        return not self._queue and not self._writing

    async def _give_way(self) -> None:
        """Until the loop has a quiet moment; not while the queue threatens to overflow."""
        while len(self._queue) < self._bound // 2:
            before = self._clock.monotonic()
            await asyncio.sleep(0)
            now = self._clock.monotonic()
            if not self._queue:  # seen while a node stopped: nothing is left to wait for
                return
            waiting_since, _ = self._queue[0]
            if now - before < BUSY_SECONDS or now - waiting_since >= PATIENCE_SECONDS:
                return
            await self._clock.sleep(GIVE_WAY_SECONDS)

    async def _write_some(self) -> None:
        """One; where many wait or are gathered, several at once, which a store takes together.
        Never two that count up the same event: their order matters."""
        most = AT_ONCE if self.gather_seconds or len(self._queue) >= AT_ONCE else 1
        some: dict[object, Write] = {}
        while self._queue and len(some) < most and self._queue[0][1].key not in some:
            write = self._queue.popleft()[1]
            some[write.key] = write
        await all_of(self._write(item) for item in some.values())

    async def _write(self, write: Write) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._correlator.stored(write.key, await self._store(write.event))
                return
            except PASSING as error:
                pause = with_jitter(PAUSE.delay(attempt), 0.5, self._rng)
                await self._clock.sleep(max(pause, float(error.retry_after_seconds or 0)))
            except ApiError as error:
                # Refused for good: its namespace is going away, or the object is.
                log.debug("event was refused", reason=write.event["reason"], error=error)
                return
        log.warning("event dropped after its retries", reason=write.event["reason"])

    async def _store(self, event: Obj) -> Obj:
        namespace, name = event["metadata"]["namespace"], event["metadata"]["name"]
        if event["count"] > 1:
            counted = {field: event[field] for field in ("count", "lastTimestamp", "message")}
            try:
                return await self._client.patch(EVENTS, namespace, name, counted)
            except NotFound:
                pass  # it has expired meanwhile: it begins anew under a new name
            event = self._rename(event)
        for _ in range(RENAMES):
            try:
                return await self._client.create(EVENTS, event, namespace)
            except AlreadyExists:
                # Others had one of an object of that name in the very same nanosecond: where time
                # is virtual, many do.
                event = self._rename(event)
        return await self._client.create(EVENTS, event, namespace)

    def _rename(self, event: Obj) -> Obj:
        return {**event, "metadata": {**event["metadata"], "name": self._name(event)}}

    def _event(
        self,
        about: Obj,
        type: str,  # noqa: A002  # as the Event has it
        reason: str,
        message: str,
        annotations: dict[str, str] | None,
    ) -> Obj:
        now = time_text(self._clock.now())
        source = {"component": self._component}
        if self._host:
            source["host"] = self._host
        event: Obj = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": about.get("namespace") or "default"},
            "involvedObject": about,
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": type,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }
        event["metadata"]["name"] = self._name(event)
        if annotations:
            event["metadata"]["annotations"] = annotations
        return event

    def _name(self, event: Obj) -> str:
        """`<object>.<time in hex>`, never the same twice."""
        moment = max(int(self._clock.now() * 1e9), self._last_nanoseconds + 1)
        self._last_nanoseconds = moment
        return f"{event['involvedObject'].get('name', '')}.{moment:x}"
