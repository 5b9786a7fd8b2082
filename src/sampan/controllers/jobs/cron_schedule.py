"""Cron schedules: five fields, or @hourly and its like; when they strike next.

Job: parse a schedule; the moments at which it strikes, in a time zone. Pure.
Invariant: a moment that a change of clocks skips does not strike; one that it repeats strikes once,
    unless the schedule strikes every hour.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from sampan.core.fast_dataclass import dataclass

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
HORIZON_DAYS = 366 * 5  # a schedule that does not strike in five years never does


class ScheduleError(ValueError):
    """The text is no schedule."""


@dataclass(frozen=True, slots=True)
class Schedule:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool  # the field of days is *
    any_weekday: bool
    every_seconds: float = 0.0  # @every: from the moment of asking


def parse(text: str) -> Schedule:
    text = text.strip()
    if text.startswith("@every "):
        nothing: frozenset[int] = frozenset()
        seconds = _duration(text.removeprefix("@every ").strip())
        return Schedule(nothing, nothing, nothing, nothing, nothing, True, True, seconds)
    fields = _NAMED.get(text, text).split()
    if len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: {fields}")
    minute, hour, day, month, weekday = fields
    return Schedule(
        _field(minute, 0, 59),
        _field(hour, 0, 23),
        _field(day, 1, 31),
        _field(month, 1, 12, _MONTHS, 1),
        _field(weekday, 0, 6, _DAYS, 0),
        _is_any(day),
        _is_any(weekday),
    )


def next_after(schedule: Schedule, moment: float, zone: ZoneInfo) -> float | None:
    """The first strike after `moment`; None where there is none."""
    if schedule.every_seconds:
        return float(int(moment) + max(1, int(schedule.every_seconds)))
    first = datetime.fromtimestamp(moment, zone).date()
    for offset in range(HORIZON_DAYS):
        day = first + timedelta(days=offset)
        if _strikes_on(schedule, day):
            for strike in _strikes(schedule, day, zone):
                if strike > moment:
                    return strike
    return None


def _strikes_on(schedule: Schedule, day: date) -> bool:
    if day.month not in schedule.months:
        return False
    by_day = day.day in schedule.days
    by_weekday = day.isoweekday() % 7 in schedule.weekdays
    if schedule.any_day or schedule.any_weekday:
        return by_day and by_weekday
    return by_day or by_weekday  # cron's old rule: both given means either


def _strikes(schedule: Schedule, day: date, zone: ZoneInfo) -> Iterator[float]:
    repeats = (0, 1) if len(schedule.hours) == 24 else (0,)
    found: set[float] = set()
    for hour in schedule.hours:
        for minute in schedule.minutes:
            for fold in repeats:
                local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone, fold=fold)
                back = local.astimezone(UTC).astimezone(zone)
                if (back.hour, back.minute) == (hour, minute):  # else the clocks skip it
                    found.add(local.timestamp())
    return iter(sorted(found))


def _is_any(field: str) -> bool:
    return field in ("*", "?", "*/1", "?/1")


def _field(
    text: str, least: int, most: int, names: list[str] | None = None, base: int = 0
) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, None, 0) if slash else 1
        if step < 1:
            raise ScheduleError(f"step of range should be a positive number: {part}")
        if span in ("*", "?"):
            first, last = least, most
        else:
            start, dash, end = span.partition("-")
            first = _number(start, names, base)
            # `5/15` is `5-59/15`.
            last = _number(end, names, base) if dash else (most if slash else first)
        if first < least or last > most or first > last:
            raise ScheduleError(f"{part}: out of the range {least}-{most}")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, names: list[str] | None, base: int) -> int:
    if names is not None and text.lower() in names:
        return names.index(text.lower()) + base
    if not text.isdigit():
        raise ScheduleError(f"failed to parse int from {text!r}")
    return int(text)


def _duration(text: str) -> float:
    total, number = 0.0, ""
    for character in text:
        if character in _UNITS and number:
            total += float(number) * _UNITS[character]
            number = ""
        elif character.isdigit() or character == ".":
            number += character
        else:
            raise ScheduleError(f"failed to parse duration @every {text}")
    if number or total <= 0:
        raise ScheduleError(f"failed to parse duration @every {text}")
    return total
