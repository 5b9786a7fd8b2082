"""Spans of time: as Go writes and reads them (`1m30s`), and as people do (`5s`, `7h`, `2y33d`).

Job: Go's durations both ways, as time.ParseDuration and Duration.String; seconds → the text that
    kubectl's AGE columns show. Pure.
Invariant: a duration printed and read again is the same; the text for people has at most two units.
"""

import re

from sampan.core.digits import whole_number
from sampan.core.patterns import lazy_pattern

NANO = 10**9
_LONGEST = 2**63  # nanoseconds, as Go keeps them
_UNITS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": NANO, "m": 60 * NANO,
    "h": 3600 * NANO,
}  # fmt: skip
_LONG_UNITS = {"d": 86400, "w": 7 * 86400}  # that Go does not know
_LONG = lazy_pattern(r"(\d+(?:\.\d+)?)([dw])", re.ASCII)
_PART = lazy_pattern(r"(\d*)(?:\.(\d*))?([^.\d]*)", re.ASCII)


class DurationError(ValueError):
    """The text is no duration; the message is Go's."""


def parse_duration(text: str) -> int:
    """Nanoseconds: `1m30s`, `1.5h`, `-2ms`, `0`. Raises DurationError."""
    invalid = DurationError(f'time: invalid duration "{text}"')
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise invalid
    total = 0
    while rest:
        part = _PART.match(rest)
        if part is None or not (part[1] or part[2]):
            raise invalid
        fraction = (part[2] or "")[:18]  # below a nanosecond there is nothing
        total += whole_number(part[1] or "0") * _unit(part[3], text)
        total += int(fraction or 0) * _unit(part[3], text) // 10 ** len(fraction)
        rest = rest[part.end() :]
    if total >= _LONGEST:
        raise invalid
    return -total if text.startswith("-") else total


def parse_seconds(text: object) -> float:
    """Of a span of time that is not negative. Raises DurationError."""
    if not isinstance(text, str):
        raise DurationError(f"expected a duration such as 1m30s, found {text!r}")
    nanos = parse_duration(text)
    if nanos < 0:
        raise DurationError(f"must not be negative: {text}")
    return nanos / NANO


def long_seconds(duration: object) -> float:
    """Of a number of seconds, or of `90s`, `1h30m`, `2d`, `1w`; not negative. Raises
    DurationError."""
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        if not 0 <= duration < _LONGEST / NANO:
            raise DurationError(f"{duration} is no span of time")
        return float(duration)
    if isinstance(duration, str) and (long := _LONG.fullmatch(duration)):
        return long_seconds(float(long[1]) * _LONG_UNITS[long[2]])
    return parse_seconds(duration)


def duration_text(nanos: int) -> str:
    """As Go prints it: `0s`, `850ms`, `1.204s`, `1h0m5s`."""
    sign, rest = ("-" if nanos < 0 else ""), abs(nanos)
    if rest < NANO:
        unit = "ms" if rest >= 10**6 else "µs" if rest >= 1000 else "ns"
        return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}" if rest else "0s"
    minutes, rest = divmod(rest, 60 * NANO)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, NANO)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text


def seconds_text(seconds: float) -> str:
    """As Go prints a span of time, cut to milliseconds."""
    return duration_text(int(seconds * 1000) * 10**6)


def _unit(name: str, text: str) -> int:
    if not name:
        raise DurationError(f'time: missing unit in duration "{text}"')
    if name not in _UNITS:
        raise DurationError(f'time: unknown unit "{name}" in duration "{text}"')
    return _UNITS[name]


def _decimal(nanos: int, unit: int) -> str:
    whole, rest = divmod(nanos, unit)
    if not rest:
        return str(whole)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0")


# As people read it

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def human_duration(seconds: float) -> str:
    """As apimachinery's HumanDuration: fine while short, coarse when long."""
    whole = int(seconds)  # towards zero: clocks that are a little apart are not an error
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    text = f"{seconds // large}{large_unit}"
    return f"{text}{rest}{small_unit}" if rest else text
