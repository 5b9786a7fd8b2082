"""Traces: what was done for an object, step by step, and how long each step took.

Job: remember spans by the uid of the object that they were about, cheaply; give them out again.
Owner: each process builds one `Traces`, and passes it to its parts with its metrics.
Invariant: memory is bounded, whatever comes: the oldest trace goes first; of a trace that is full
    the beginning and the newest stay. Both losses are counted.
Invariant: nothing is written on objects; with tracing off a step costs one question.
"""

import asyncio
import math
import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from operator import itemgetter
from typing import TypeVar

from sampan.core.bounded import Bounded
from sampan.core.clock import Clock
from sampan.core.telemetry import trace_context
from sampan.core.telemetry.spans import ERROR, NO_MARKS, TOP, TRACE_ID, About, Marks, Span, spread
from sampan.core.telemetry.trace_context import header_of, span_id_of, trace_id_of

MOST_TRACES = 2000
MOST_SPANS = 256  # of one trace
LATE_SPANS = 64  # of these, the newest: of a pod that restarts for ever the middle is let go
MOST_UNDELIVERED = 10_000
MOST_ERROR = 200  # characters of what a step failed with
TRIM_EVERY = 8  # notes: looking costs more than keeping them for a moment
# Requests that are seen plugin by plugin: a person has no more, a flood need not pay for it.
DETAILED_PER_SECOND = 100
T = TypeVar("T")


class _TimedStep:
    """One that is under way, for those whom it calls."""

    __slots__ = ("_header", "facts", "uid")

    def __init__(self, uid: str, header: Callable[[], str]) -> None:
        self.uid, self._header = uid, header
        self.facts: dict[str, str] = {}

    def header(self) -> str:
        return self._header()


class Trace(list[Span | Marks]):
    """What was noted of one object, in order."""

    __slots__ = ("dropped", "told")
    dropped: int  # spans that made room for later ones
    told: About | None  # the object, where no request of this server was about it

    @property
    def begun_as(self) -> str:
        """The id that a caller, or a webhook, knows it by."""
        first = self[0]
        return first.trace_id if isinstance(first, Marks) else ""

    @property
    def about(self) -> About | None:
        """The object; None where only its uid is known."""
        return next((item.about for item in self if isinstance(item, Marks)), self.told)

    def began_request(self, id_: str) -> float:
        """When the request began that has the id; never, where none has."""
        began = (item.began for item in self if isinstance(item, Marks) and item.id == id_)
        return next(began, math.inf)

    @property
    def spans(self) -> list[Span]:
        spans: list[Span] = []
        for noted in self:
            spans += spread(noted, len(spans))
        return spans

    def trim(self) -> None:
        """The beginning stays, and the newest; what is between them makes room."""
        counts = [1 if isinstance(item, Span) else item.size for item in self]
        if sum(counts) <= MOST_SPANS:
            return
        first, kept = 0, 0
        while kept + counts[first] <= MOST_SPANS - LATE_SPANS:
            kept += counts[first]
            first += 1
        last, kept = len(self) - 1, counts[-1]
        while last > first and kept + counts[last - 1] <= LATE_SPANS:
            last -= 1
            kept += counts[last]
        self.dropped += sum(counts[first:last])
        del self[first:last]


class Outbox:
    """Spans on their way to somebody else: to the API server, which keeps them, or to a
    collector."""

    def __init__(self) -> None:
        self.dropped = 0  # spans that found no room
        self._noted: list[tuple[str, Span | Marks]] = []
        self._any = asyncio.Event()

    def add(self, uid: str, noted: Span | Marks) -> None:
        if len(self._noted) >= MOST_UNDELIVERED:
            self.dropped += 1
            return
        self._noted.append((uid, noted))
        self._any.set()

    async def noted(self) -> None:
        """Returns when there is something to deliver."""
        await self._any.wait()

    def take(self) -> list[tuple[str, list[Span]]]:
        """Each with its parts, whose parent is the first."""
        self._any.clear()
        noted, self._noted = self._noted, []
        return [(uid, spread(item, 0)) for uid, item in noted]


class Traces:
    def __init__(
        self, clock: Clock, *, most: int = MOST_TRACES, outbox: Outbox | None = None
    ) -> None:
        """`outbox`: where spans go that somebody else keeps."""
        self.is_on = most > 0
        self.now = clock.now  # asked at each step: without a call of ours in between
        self._outbox = outbox
        self._exported: Outbox | None = None
        self.forgotten = 0  # traces that made room for newer ones
        # By uid, the oldest first.
        self._traces: Bounded[str, Trace] = Bounded(max(most, 1), self._evicted)
        self._second, self._detailed = 0.0, 0  # when it began, and how many came since

    def export_to(self, outbox: Outbox) -> None:
        """What is kept here goes there, too."""
        self._exported = outbox

    def marks(self, id_: str = "") -> Marks:
        """`id_`: what the caller knows the request by."""
        if not self.is_on:
            return NO_MARKS
        marks = Marks()
        marks._now = self.now
        marks.began = began = self.now()
        if not 0 <= began - self._second < 1:
            self._second, self._detailed = began, 0
        self._detailed += 1
        marks.is_detailed = self._detailed <= DETAILED_PER_SECOND
        marks.id, marks._facts = id_, None
        return marks

    def add(self, uid: str, span: Span) -> None:
        """A step that is over."""
        if self._outbox is not None:
            self._outbox.add(uid, span)
        elif self.is_on:
            self._note(uid, span)

    def add_of(self, about: About, uid: str, span: Span) -> None:
        """A step of an object that nobody may have written through this server."""
        self.add(uid, span)
        trace = self._traces.get(uid)
        if trace is not None:
            trace.told = about

    def span(self, uid: str, lane: str, name: str, began: float, **facts: str) -> None:
        """A step that ends now."""
        if self.is_on:
            self.add(uid, Span(lane, name, began, self.now(), TOP, facts))

    def span_for(self, uid: str, lane: str, name: str, seconds: float, **facts: str) -> None:
        """A step that took so long, and ends now."""
        if self.is_on:
            now = self.now()
            self.add(uid, Span(lane, name, now - seconds, now, TOP, facts))

    def request(self, uid: str, marks: Marks) -> None:
        """A request that is answered now, with the steps that it took."""
        if marks is not NO_MARKS:
            marks.ended = self.now()
            self._note(uid, marks)

    def lone_request(self, marks: Marks) -> Trace:
        """A request that is about no object: whoever asks keeps it."""
        marks.ended = self.now()
        id_ = marks.facts.setdefault(TRACE_ID, os.urandom(16).hex())
        if self._exported is not None:
            self._exported.add(id_, marks)
        trace = Trace((marks,))
        trace.dropped, trace.told = 0, None
        return trace

    async def timed(self, uid: str, lane: str, name: str, work: Awaitable[T]) -> T:
        """A step that is `work`: what it calls may know of it, and what it notes is kept."""
        if not self.is_on:
            return await work
        began, done = self.now(), False
        step = _TimedStep(uid, partial(self._header, uid, lane, name, began))
        token = trace_context.enter(step)
        try:
            result = await work
            done = True
            return result
        finally:
            trace_context.leave(token)
            if not done:
                step.facts[ERROR] = _failure()
            self.add(uid, Span(lane, name, began, self.now(), TOP, step.facts))

    def of(self, uid: str) -> Trace | None:
        trace = self._traces.get(uid)
        if trace is not None:
            trace.trim()
        return trace

    def of_name(self, resource: str, namespace: str, name: str = "") -> dict[About, list[str]]:
        """The uids that a name, or all names of a namespace, stood for, the newest first. Asked
        seldom, written all the time: they are looked for."""
        found: dict[About, list[str]] = {}
        for uid, trace in self._traces.items():
            about = trace.about
            if about is None or about[:2] != (resource, namespace):
                continue
            if not name or about.name == name:
                found.setdefault(about, []).insert(0, uid)
        return found

    def id_of(self, uid: str) -> str:
        """By which others know the trace."""
        trace = self._traces.get(uid)
        return (trace.begun_as if trace is not None else "") or trace_id_of(uid)

    def of_request(self, id_: str) -> str:
        """The uid of the object that a request was about; empty where it is not known any more."""
        # The first one: ids may be chosen, and whoever chooses another's does not replace it.
        known = ((trace.began_request(id_), uid) for uid, trace in self._traces.items())
        began, uid = min(known, key=itemgetter(0), default=(math.inf, ""))
        return "" if began == math.inf else uid

    def _header(self, uid: str, lane: str, name: str, began: float) -> str:
        return header_of(self.id_of(uid), span_id_of(uid, lane, name, began))

    def _note(self, uid: str, noted: Span | Marks) -> None:
        trace = self._traces.get(uid)
        if trace is None:
            self._traces[uid] = trace = Trace((noted,))
            trace.dropped, trace.told = 0, None
        else:
            trace.append(noted)
            if not len(trace) % TRIM_EVERY:
                trace.trim()
        if self._exported is not None:
            self._exported.add(uid, noted)

    def _evicted(self, _uid: str, _trace: Trace) -> None:
        self.forgotten += 1


def _failure() -> str:
    """What the step that is being left fails with."""
    error = sys.exc_info()[1]
    if error is None or isinstance(error, asyncio.CancelledError):
        return "interrupted"
    return (str(error) or type(error).__name__)[:MOST_ERROR]


class _NoClock:
    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps on it")


NO_TRACES = Traces(_NoClock(), most=0)
