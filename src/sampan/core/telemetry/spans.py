"""Spans: one step, or a request with its steps, as it is noted.

Job: the moments of a request in one flat list, and the spans that they are, when somebody asks.
Invariant: a request does not pay for spans that nobody looks at: no text is put together before.
Invariant: the marks of a request that nobody traces keep nothing.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from sampan.core.telemetry.trace_context import TraceContext, header_of

TOP = -1  # the parent of a span that has none
# Facts by which exported spans are known to others.
TRACE_ID, SPAN_ID, PARENT_ID = "trace id", "span id", "parent span id"
REQUEST_ID = "audit-id"  # the fact by which a request is found again
REQUESTS = "apiserver"  # the lane of all requests
RESPONSE, REFUSED = "response", "refused"  # what follows the last step
ERROR = "error"  # the fact that says why it did not succeed


class Span(NamedTuple):
    lane: str  # the component that did it
    name: str
    began: float  # wall time: spans of several processes meet in one trace
    ended: float
    parent: int = TOP  # which span of the trace it is a part of
    facts: Mapping[str, str] = {}


class About(NamedTuple):
    """Which object a request was about."""

    resource: str  # with its group
    namespace: str
    name: str


class Marks(list[str | float]):
    """When the steps of one request ended: name, moment, name, moment, …

    It is kept as it is. What is known at the end is written into it by whoever answers."""

    __slots__ = (
        "_facts", "_now", "began", "ended", "group", "id", "is_detailed", "name", "namespace",
        "phase", "plural", "subresource", "user", "verb",
    )  # fmt: skip
    began: float
    ended: float
    id: str  # what the caller knows the request by
    is_detailed: bool  # each admission plugin is seen by itself
    verb: str
    group: str
    plural: str
    subresource: str
    namespace: str
    name: str
    user: str
    phase: str  # of the pod that it was about
    _now: Callable[[], float]
    _facts: dict[str, str] | None  # made with the first of them

    def at(self, step: str) -> None:
        """This step has just ended; it began where the last one ended."""
        self += (step, self._now())  # one step of C: every write comes by here ten times

    @property
    def uid(self) -> str:
        return ""  # of what is created nobody knows it before

    @property
    def facts(self) -> dict[str, str]:
        if self._facts is None:
            self._facts = {}
        return self._facts

    @property
    def about(self) -> About:
        resource = f"{self.plural}.{self.group}" if self.group else self.plural
        return About(resource, self.namespace, self.name)

    @property
    def trace_id(self) -> str:
        """That a caller began, or others were told; else empty."""
        return self._facts.get(TRACE_ID, "") if self._facts is not None else ""

    @property
    def size(self) -> int:
        """How many spans it is."""
        return 2 + len(self) // 2 if self else 1

    def spans(self, at: int) -> Iterator[Span]:
        """The whole, and the steps in it; `at`: how many spans come before it."""
        plural = f"{self.plural}/{self.subresource}" if self.subresource else self.plural
        known = {"user": self.user, REQUEST_ID: self.id, "phase": self.phase}
        facts = {key: value for key, value in known.items() if value} | (self._facts or {})
        yield Span(REQUESTS, f"{self.verb} {plural}", self.began, self.ended, TOP, facts)
        began = self.began
        for name, ended in zip(self[::2], self[1::2], strict=True):
            assert isinstance(name, str)
            assert isinstance(ended, float)
            yield Span(REQUESTS, name, began, ended, at)
            began = ended
        if self:
            yield Span(REQUESTS, REFUSED if ERROR in facts else RESPONSE, began, self.ended, at)

    def continue_from(self, caller: TraceContext) -> None:
        """It is a part of the caller's trace."""
        self.facts[TRACE_ID], self.facts[PARENT_ID] = caller.trace_id, caller.span_id

    def header(self) -> str:
        """For calls to others on its behalf: from now on it has ids that they know."""
        facts = self.facts
        if SPAN_ID not in facts:
            facts.setdefault(TRACE_ID, os.urandom(16).hex())
            facts[SPAN_ID] = os.urandom(8).hex()
        return header_of(facts[TRACE_ID], facts[SPAN_ID])


class _NoMarks(Marks):
    """For requests that nobody traces."""

    __slots__ = ()

    def at(self, step: str) -> None:
        pass

    def continue_from(self, caller: TraceContext) -> None:
        pass

    def header(self) -> str:
        return ""


NO_MARKS: Marks = _NoMarks()
NO_MARKS.id, NO_MARKS.is_detailed = "", False


def spread(noted: Span | Marks, at: int) -> list[Span]:
    """With its parts, where it has some; `at`: how many spans come before it."""
    return [noted] if isinstance(noted, Span) else list(noted.spans(at))
