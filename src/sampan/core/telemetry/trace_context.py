"""W3C trace context: which trace a call belongs to, as one header line says it. Pure, but for the
step that the running task is in.

Job: read and write `traceparent`; remember the step that is under way, so that whoever makes a call
    for it can say so, and note what is worth knowing about it.
Invariant: what is no valid header is as none.
"""

from contextvars import ContextVar, Token
from typing import NamedTuple, Protocol

from sampan.core.patterns import lazy_pattern

HEADER = "traceparent"
_FORM = lazy_pattern(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$")
_SAMPLED = 1
_LONGEST = 512  # of a header that is looked at


class TraceContext(NamedTuple):
    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16
    is_sampled: bool


def parse(header: str) -> TraceContext | None:
    found = _FORM.match(header) if len(header) <= _LONGEST else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not trace_id.strip("0"):
        return None
    if not span_id.strip("0"):
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))


def header_of(trace_id: str, span_id: str) -> str:
    return f"00-{trace_id}-{span_id}-01"


def trace_id_of(uid: str) -> str:
    """Of an object that nobody began a trace for: its uid, which is as long."""
    bare = uid.replace("-", "")
    is_id = len(bare) == 32 and not set(bare) - set("0123456789abcdef")
    return bare if is_id else _digest(uid, 16)


def span_id_of(uid: str, lane: str, name: str, began: float) -> str:
    """The same for whoever asks, now and later: nothing needs to be kept for it."""
    return _digest(f"{uid} {lane} {name} {began!r}", 8)


def _digest(text: str, size: int) -> str:
    from hashlib import blake2b  # a command that traces nothing does not wait for it

    return blake2b(text.encode(), digest_size=size).hexdigest()


class Step(Protocol):
    """What the running task is doing; its header is made when somebody calls others for it."""

    @property
    def facts(self) -> dict[str, str]: ...

    @property
    def uid(self) -> str:
        """Of the object that it is done for; empty where that is not known yet."""

    def header(self) -> str: ...


_current: ContextVar[Step | None] = ContextVar("step", default=None)


def enter(step: Step | None) -> Token[Step | None]:
    return _current.set(step)


def leave(token: Token[Step | None]) -> None:
    _current.reset(token)


def note(key: str, value: str) -> None:
    """A fact about the step that is under way; nothing where nobody traces it."""
    step = _current.get()
    if step is not None:
        step.facts[key] = value


def current_uid() -> str:
    """Of the object that the step under way is done for; empty where nothing is traced."""
    step = _current.get()
    return step.uid if step is not None else ""


def current_header() -> str:
    """For calls to others; empty where nothing is traced."""
    step = _current.get()
    return step.header() if step is not None else ""
