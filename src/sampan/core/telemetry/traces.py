"""Traces: what was done for an object, step by step, and how long each step took.

Job: remember spans by the uid of the object that they were about, cheaply; give them out again.
Owner: each process builds one `Traces`, and passes it to its parts with its metrics.
Invariant: memory is bounded, whatever comes: the oldest trace goes first; of a trace that is full
    the beginning and the newest stay. Both losses are counted.
Invariant: nothing is written on objects; with tracing off a step costs one question.
"""

import asyncio
import os
import sys
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from sampan.core.clock import Clock
from sampan.core.telemetry import trace_context
from sampan.core.telemetry.trace_context import TraceContext, header_of, span_id_of, trace_id_of

MOST_TRACES = 2000
MOST_SPANS = 256  # of one trace
LATE_SPANS = 64  # of these, the newest: of a pod that restarts for ever the middle is let go
MOST_UNDELIVERED = 10_000
MOST_ERROR = 200  # characters of what a step failed with
TOP = -1  # the parent of a span that has none
# Facts by which exported spans are known to others.
TRACE_ID, SPAN_ID, PARENT_ID = "trace id", "span id", "parent span id"
T = TypeVar("T")


class Span(NamedTuple):
    lane: str  # the component that did it
    name: str
    began: float  # wall time: spans of several processes meet in one trace
    ended: float
    parent: int = TOP  # which span of the trace it is a part of
    facts: Mapping[str, str] = {}


class Marks:
    """When the steps of one request ended: one flat list, made into spans when somebody asks. It is
    kept as it is: a request must not pay for spans that nobody looks at."""

    __slots__ = ("_now", "began", "ended", "facts", "id", "lane", "name", "steps")

    def __init__(self, now: Callable[[], float], id_: str) -> None:
        self._now = now
        self.began = self.ended = now()
        self.lane = self.name = ""  # whose it was, once it is over
        self.id = id_
        self.steps: list[str | float] = []  # name, moment, name, moment, …
        self.facts: dict[str, str] = {}

    def at(self, step: str) -> None:
        """This step has just ended; it began where the last one ended."""
        self.steps += (step, self._now())

    @property
    def spans(self) -> tuple[Span, list[str | float]]:
        """The whole, and the steps in it."""
        return Span(self.lane, self.name, self.began, self.ended, TOP, self.facts), self.steps

    def continue_from(self, caller: TraceContext) -> None:
        """It is a part of the caller's trace."""
        self.facts[TRACE_ID], self.facts[PARENT_ID] = caller.trace_id, caller.span_id

    def header(self) -> str:
        """For calls to others on its behalf: from now on it has ids that they know."""
        if SPAN_ID not in self.facts:
            self.facts.setdefault(TRACE_ID, os.urandom(16).hex())
            self.facts[SPAN_ID] = os.urandom(8).hex()
        return header_of(self.facts[TRACE_ID], self.facts[SPAN_ID])


class _NoMarks(Marks):
    """For requests that nobody traces."""

    __slots__ = ()

    def __init__(self) -> None:
        self.steps, self.id = [], ""

    def at(self, step: str) -> None:
        pass

    def continue_from(self, caller: TraceContext) -> None:
        pass

    def header(self) -> str:
        return ""


NO_MARKS: Marks = _NoMarks()


class _TimedStep:
    """One that is under way, for those whom it calls."""

    __slots__ = ("_header", "facts")

    def __init__(self, header: Callable[[], str]) -> None:
        self._header = header
        self.facts: dict[str, str] = {}

    def header(self) -> str:
        return self._header()


class Trace:
    __slots__ = ("_early", "_late", "_late_count", "begun_as", "count", "dropped")

    def __init__(self, begun_as: str = "") -> None:
        self.begun_as = begun_as  # the id that a caller, or a webhook, knows it by
        self._early: list[Span | Marks] = []
        self._late: deque[tuple[Span | Marks, int]] | None = None  # where there are so many
        self._late_count = 0
        self.count = 0  # of spans
        self.dropped = 0  # spans that made room for later ones

    def add(self, noted: Span | Marks, count: int = 1) -> None:
        self.count += count
        if self._late is None and self.count <= MOST_SPANS - LATE_SPANS:
            self._early.append(noted)
            return
        if self._late is None:
            self._late = deque()
        self._late.append((noted, count))
        self._late_count += count
        while self._late_count > LATE_SPANS and len(self._late) > 1:
            _, gone = self._late.popleft()
            self._late_count -= gone
            self.count -= gone
            self.dropped += gone

    def has_request(self, fact: str, value: str) -> bool:
        """Whether one of its requests is marked so; cheaper than all of its spans."""
        noted = (*self._early, *(item for item, _ in self._late or ()))
        return any(isinstance(item, Marks) and item.facts.get(fact) == value for item in noted)

    @property
    def spans(self) -> list[Span]:
        spans: list[Span] = []
        for noted in (*self._early, *(item for item, _ in self._late or ())):
            spans += _spread(noted, len(spans))
        return spans


def _spread(noted: Span | Marks, at: int) -> list[Span]:
    """With its parts, where it has some; `at`: how many spans come before it."""
    if isinstance(noted, Span):
        return [noted]
    whole, steps = noted.spans
    return [whole, *_parts(whole, steps, at)]


def _parts(whole: Span, steps: list[str | float], parent: int) -> Iterator[Span]:
    began = whole.began
    for name, ended in zip(steps[::2], steps[1::2], strict=True):
        assert isinstance(name, str)
        assert isinstance(ended, float)
        yield Span(whole.lane, name, began, ended, parent)
        began = ended


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
        return [(uid, _spread(item, 0)) for uid, item in noted]


class Traces:
    def __init__(
        self, clock: Clock, *, most: int = MOST_TRACES, outbox: Outbox | None = None
    ) -> None:
        """`outbox`: where spans go that somebody else keeps."""
        self.is_on = most > 0
        self._outbox = outbox
        self._exported: Outbox | None = None
        self.forgotten = 0  # traces that made room for newer ones
        self._clock, self._most = clock, most
        self._traces: OrderedDict[str, Trace] = OrderedDict()  # by uid, the oldest first

    def export_to(self, outbox: Outbox) -> None:
        """What is kept here goes there, too."""
        self._exported = outbox

    def now(self) -> float:
        return self._clock.now()

    def marks(self, id_: str = "") -> Marks:
        """`id_`: what the caller knows the request by."""
        return Marks(self._clock.now, id_) if self.is_on else NO_MARKS

    def add(self, uid: str, span: Span) -> None:
        """A step that is over."""
        if self._outbox is not None:
            self._outbox.add(uid, span)
        elif self.is_on:
            self._of(uid).add(span)
            if self._exported is not None:
                self._exported.add(uid, span)

    def span(self, uid: str, lane: str, name: str, began: float, **facts: str) -> None:
        """A step that ends now."""
        if self.is_on:
            self.add(uid, Span(lane, name, began, self._clock.now(), TOP, facts))

    def span_for(self, uid: str, lane: str, name: str, seconds: float, **facts: str) -> None:
        """A step that took so long, and ends now."""
        if self.is_on:
            now = self._clock.now()
            self.add(uid, Span(lane, name, now - seconds, now, TOP, facts))

    def request(self, uid: str, lane: str, name: str, marks: Marks) -> None:
        """A request that is answered now, with the steps that it took."""
        if not self.is_on or marks is NO_MARKS:
            return
        marks.lane, marks.name, marks.ended = lane, name, self._clock.now()
        self._of(uid, marks.facts.get(TRACE_ID, "")).add(marks, 1 + len(marks.steps) // 2)
        if self._exported is not None:
            self._exported.add(uid, marks)

    def lone_request(self, lane: str, name: str, marks: Marks) -> Trace:
        """A request that is about no object: whoever asks keeps it."""
        trace = Trace(marks.facts.get(TRACE_ID) or os.urandom(16).hex())
        marks.lane, marks.name, marks.ended = lane, name, self._clock.now()
        trace.add(marks, 1 + len(marks.steps) // 2)
        if self._exported is not None:
            self._exported.add(trace.begun_as, marks)
        return trace

    async def timed(self, uid: str, lane: str, name: str, work: Awaitable[T]) -> T:
        """A step that is `work`: what it calls may know of it, and what it notes is kept."""
        if not self.is_on:
            return await work
        began, done = self._clock.now(), False
        step = _TimedStep(partial(self._header, uid, lane, name, began))
        token = trace_context.enter(step)
        try:
            result = await work
            done = True
            return result
        finally:
            trace_context.leave(token)
            if not done:
                step.facts["error"] = _failure()
            self.add(uid, Span(lane, name, began, self._clock.now(), TOP, step.facts))

    def of(self, uid: str) -> Trace | None:
        return self._traces.get(uid)

    def id_of(self, uid: str) -> str:
        """By which others know the trace."""
        trace = self._traces.get(uid)
        return (trace.begun_as if trace is not None else "") or trace_id_of(uid)

    def of_request(self, fact: str, value: str) -> str:
        """The uid of the object that a request was about; empty where it is not known any more."""
        known = reversed(self._traces.items())
        return next((uid for uid, trace in known if trace.has_request(fact, value)), "")

    def _header(self, uid: str, lane: str, name: str, began: float) -> str:
        return header_of(self.id_of(uid), span_id_of(uid, lane, name, began))

    def _of(self, uid: str, begun_as: str = "") -> Trace:
        """`begun_as`: the id that a caller, or a webhook, knows it by."""
        trace = self._traces.get(uid)
        if trace is None:
            if len(self._traces) >= self._most:
                self._traces.popitem(last=False)
                self.forgotten += 1
            trace = self._traces[uid] = Trace(begun_as)
        return trace


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
