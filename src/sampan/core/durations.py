"""Go's durations: `1m30s`, `1.5h`, `850ms`.

Job: both ways, as time.ParseDuration and Duration.String. Pure.
Invariant: a duration printed and read again is the same.
"""

import re

from sampan.core.digits import whole_number
from sampan.core.patterns import lazy_pattern

NANO = 10**9
LONGEST = 2**63  # nanoseconds, as Go keeps them
_UNITS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": NANO, "m": 60 * NANO,
    "h": 3600 * NANO,
}  # fmt: skip
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
    is_negative = text.startswith("-")
    if total >= LONGEST + is_negative:
        raise invalid
    return -total if is_negative else total


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
