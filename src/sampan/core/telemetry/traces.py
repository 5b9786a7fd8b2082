"""Traces: what was done for an object, step by step, and how long each step took.

Job: remember spans by the uid of the object that they were about, cheaply; give them out again.
Owner: each process builds one `Traces`, and passes it to its parts with its metrics.
Invariant: memory is bounded, whatever comes: the oldest trace goes first, a trace that is full
    takes no more spans; both are counted.
Invariant: nothing is written on objects; with tracing off a step costs one question.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sampan.core.clock import Clock

MOST_TRACES = 2000
MOST_SPANS = 256  # of one trace: a pod that restarts for ever ends here
MOST_UNDELIVERED = 10_000
TOP = -1  # the parent of a span that has none


class Span(NamedTuple):
    lane: str  # the component that did it
    name: str
    began: float  # wall time: spans of several processes meet in one trace
    ended: float
    parent: int = TOP  # which span of the trace it is a part of
    facts: Mapping[str, str] = {}


class Marks:
    """When the steps of one request ended: one flat list, made into spans when somebody asks."""

    __slots__ = ("_clock", "began", "facts", "steps")

    def __init__(self, clock: Clock, began: float) -> None:
        self._clock = clock
        self.began = began
        self.steps: list[str | float] = []  # name, moment, name, moment, …
        self.facts: dict[str, str] = {}

    def at(self, step: str) -> None:
        """This step has just ended; it began where the last one ended."""
        self.steps += (step, self._clock.now())


class _NoMarks(Marks):
    """For requests that nobody traces."""

    __slots__ = ()

    def __init__(self) -> None:
        self.steps = []

    def at(self, step: str) -> None:
        pass


NO_MARKS: Marks = _NoMarks()


class _Request(NamedTuple):
    """A span with its parts, as they were noted."""

    whole: Span
    steps: list[str | float]


class Trace:
    __slots__ = ("_noted", "count", "dropped")

    def __init__(self) -> None:
        self._noted: list[Span | _Request] = []
        self.count = 0  # of spans
        self.dropped = 0  # spans that found no room

    def add(self, noted: Span | _Request, count: int = 1) -> None:
        if self.count + count > MOST_SPANS:
            self.dropped += count
            return
        self.count += count
        self._noted.append(noted)

    @property
    def spans(self) -> list[Span]:
        spans: list[Span] = []
        for noted in self._noted:
            if isinstance(noted, Span):
                spans.append(noted)
            else:
                first = len(spans)
                spans.append(noted.whole)
                spans += _parts(noted, first)
        return spans


def _parts(request: _Request, parent: int) -> Iterator[Span]:
    began = request.whole.began
    for name, ended in zip(request.steps[::2], request.steps[1::2], strict=True):
        assert isinstance(name, str)
        assert isinstance(ended, float)
        yield Span(request.whole.lane, name, began, ended, parent)
        began = ended


class Outbox:
    """Spans of a process that keeps none itself: they are on their way to the API server."""

    def __init__(self) -> None:
        self.dropped = 0  # spans that found no room
        self._spans: list[tuple[str, Span]] = []
        self._noted = asyncio.Event()

    def add(self, uid: str, span: Span) -> None:
        if len(self._spans) >= MOST_UNDELIVERED:
            self.dropped += 1
            return
        self._spans.append((uid, span))
        self._noted.set()

    async def noted(self) -> None:
        """Returns when there is something to deliver."""
        await self._noted.wait()

    def take(self) -> list[tuple[str, Span]]:
        self._noted.clear()
        spans, self._spans = self._spans, []
        return spans


class Traces:
    def __init__(
        self, clock: Clock, *, most: int = MOST_TRACES, outbox: Outbox | None = None
    ) -> None:
        """`outbox`: where spans go that somebody else keeps."""
        self.is_on = most > 0
        self._outbox = outbox
        self.forgotten = 0  # traces that made room for newer ones
        self._clock, self._most = clock, most
        self._traces: OrderedDict[str, Trace] = OrderedDict()  # by uid, the oldest first

    def now(self) -> float:
        return self._clock.now()

    def marks(self, began: float | None = None) -> Marks:
        if not self.is_on:
            return NO_MARKS
        return Marks(self._clock, self._clock.now() if began is None else began)

    def add(self, uid: str, span: Span) -> None:
        """A step that is over."""
        if self._outbox is not None:
            self._outbox.add(uid, span)
        elif self.is_on:
            self._of(uid).add(span)

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
        whole = Span(lane, name, marks.began, self._clock.now(), TOP, marks.facts)
        self._of(uid).add(_Request(whole, marks.steps), 1 + len(marks.steps) // 2)

    def of(self, uid: str) -> Trace | None:
        return self._traces.get(uid)

    def _of(self, uid: str) -> Trace:
        trace = self._traces.get(uid)
        if trace is None:
            if len(self._traces) >= self._most:
                self._traces.popitem(last=False)
                self.forgotten += 1
            trace = self._traces[uid] = Trace()
        return trace


class _NoClock:
    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps on it")


NO_TRACES = Traces(_NoClock(), most=0)
