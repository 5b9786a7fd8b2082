"""Durations as Go writes them. Pure."""

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


def seconds_in(text: object) -> float | None:
    """`1m30s` → 90; None where it is none."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return text / 1e9  # as Go reads a bare number: nanoseconds
    if not isinstance(text, str) or not text:
        return None
    total, end = 0.0, 0
    for part in _PART.finditer(text):
        if part.start() != end:
            return None
        total += float(part[1]) * _UNITS[part[2]]
        end = part.end()
    return total if end == len(text) else None
