"""Spans of time in seconds: as fields and flags have them, and as people read them (`5s`, `2y33d`).

Job: Go's durations (core/durations.py) that are not negative, those of days and weeks, and the text
    that kubectl's AGE columns show. Pure.
Invariant: the text for people has at most two units.
"""

import re

from sampan.core.durations import LONGEST, NANO, DurationError, duration_text, parse_duration
from sampan.core.patterns import lazy_pattern

_LONG_UNITS = {"d": 86400, "w": 7 * 86400}  # that Go does not know
_LONG = lazy_pattern(r"(\d+(?:\.\d+)?)([dw])", re.ASCII)


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
        if not 0 <= duration < LONGEST / NANO:
            raise DurationError(f"{duration} is no span of time")
        return float(duration)
    if isinstance(duration, str) and (long := _LONG.fullmatch(duration)):
        return long_seconds(float(long[1]) * _LONG_UNITS[long[2]])
    return parse_seconds(duration)


def seconds_text(seconds: float) -> str:
    """As Go prints a span of time, cut to milliseconds."""
    return duration_text(int(seconds * 1000) * 10**6)


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
