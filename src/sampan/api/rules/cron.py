"""Cron schedules: five fields, or @hourly and its like; when they strike next.

Job: parse a schedule, in the words of the original's parser where it is none; the moments at which
    it strikes, in a time zone. Pure.
Invariant: what is accepted can be run; no text raises anything but ScheduleError.
Invariant: where clocks change it strikes when the original's library does: the walk goes from one
    field to the next as that one's, hours and minutes in real time, days by the clock.
"""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from sampan.core.digits import all_digits, whole_number
from sampan.core.durations import NANO, DurationError, parse_duration
from sampan.core.fast_dataclass import dataclass

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_EVERY = "@every "
HORIZON_YEARS = 5  # a schedule that does not strike in so many never does


class ScheduleError(ValueError):
    """The text is no schedule; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    least: int
    most: int
    names: Mapping[str, int]


_MINUTE, _HOUR, _DAY = _Bounds(0, 59, {}), _Bounds(0, 23, {}), _Bounds(1, 31, {})
_MONTH = _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)})
_WEEKDAY = _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)})


@dataclass(frozen=True, slots=True)
class Field:
    values: frozenset[int]
    is_any: bool = False  # a star, without a step


_NEVER = Field(frozenset())


@dataclass(frozen=True, slots=True)
class Schedule:
    minute: Field = _NEVER
    hour: Field = _NEVER
    day: Field = _NEVER
    month: Field = _NEVER
    weekday: Field = _NEVER
    every_seconds: int = 0  # @every: from the moment of asking


def parse(text: str) -> Schedule:
    """Raises ScheduleError."""
    if text.startswith(_EVERY):
        return Schedule(every_seconds=_every_seconds(text))
    if text.startswith("@") and text not in _NAMED:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    if not text:
        raise ScheduleError("empty spec string")
    fields = _NAMED.get(text, text).split()
    if len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minute, hour, day, month, weekday = fields
    return Schedule(
        _field(minute, _MINUTE),
        _field(hour, _HOUR),
        _field(day, _DAY),
        _field(month, _MONTH),
        _field(weekday, _WEEKDAY),
    )


def next_after(schedule: Schedule, moment: float, zone: "ZoneInfo") -> float | None:
    """The first strike after `moment`; None where there is none."""
    if schedule.every_seconds:
        return float(int(moment) + schedule.every_seconds)
    try:
        return _walked(schedule, _Walk(zone, math.floor(moment) + 1))
    except (ValueError, OverflowError):
        return None  # the calendar ends with the year 9999


def _walked(schedule: Schedule, walk: "_Walk") -> float | None:
    last_year = walk.local.year + HORIZON_YEARS
    while walk.local.year <= last_year:
        if (
            walk.to_month(schedule.month.values)
            and walk.to_day(schedule)
            and walk.to_hour(schedule.hour.values)
            and walk.to_minute(schedule.minute.values)
            and walk.to_second()
        ):
            return float(walk.at)
    return None


class _Walk:
    """From a moment on, field by field; each step says whether it stayed within the next higher
    field: if not, that one has to be looked at again."""

    def __init__(self, zone: "ZoneInfo", at: int) -> None:
        self._zone, self._is_reset = zone, False
        self._go(at)

    def to_month(self, wanted: frozenset[int]) -> bool:
        while self.local.month not in wanted:
            self._reset(self.local.replace(day=1, hour=0, minute=0, second=0))
            year, month = divmod(12 * self.local.year + self.local.month, 12)
            self._go(self._at_clock(self.local.replace(year=year, month=month + 1)))
            if self.local.month == 1:
                return False
        return True

    def to_day(self, schedule: Schedule) -> bool:
        while not _strikes_on(schedule, self.local):
            self._reset(self.local.replace(hour=0, minute=0, second=0))
            self._go(self._at_clock(self.local + timedelta(days=1)))
            if hour := self.local.hour:  # midnight is skipped, or comes twice
                self._go(self.at + 3600 * (24 - hour if hour > 12 else -hour))
            if self.local.day == 1:
                return False
        return True

    def to_hour(self, wanted: frozenset[int]) -> bool:
        while self.local.hour not in wanted:
            self._reset(self.local.replace(minute=0, second=0))
            self._go(self.at + 3600)
            if self.local.hour == 0:
                return False
        return True

    def to_minute(self, wanted: frozenset[int]) -> bool:
        while self.local.minute not in wanted:
            if not self._is_reset:
                self._is_reset = True
                self._go(self.at - self.at % 60)
            self._go(self.at + 60)
            if self.local.minute == 0:
                return False
        return True

    def to_second(self) -> bool:
        if self.local.second == 0:
            return True
        self._is_reset = True
        self._go(self.at + 60 - self.local.second)
        return False

    def _reset(self, begin: datetime) -> None:
        """What is below a field that moves on begins anew, once."""
        if not self._is_reset:
            self._is_reset = True
            self._go(self._at_clock(begin))

    def _at_clock(self, local: datetime) -> int:
        """When the clock shows it; where it never does, or twice, as Go's time.Date has it."""
        shown = int(local.replace(tzinfo=UTC).timestamp())
        near = shown - self._offset_seconds(shown)
        return shown - self._offset_seconds(near)

    def _offset_seconds(self, at: int) -> int:
        offset = datetime.fromtimestamp(at, self._zone).utcoffset()
        return int(offset.total_seconds()) if offset is not None else 0

    def _go(self, at: int) -> None:
        self.at, self.local = at, datetime.fromtimestamp(at, self._zone)


def _every_seconds(text: str) -> int:
    """Whole seconds, one at least."""
    try:
        nanos = parse_duration(text.removeprefix(_EVERY))
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from error
    return max(1, nanos // NANO)


def _strikes_on(schedule: Schedule, day: date) -> bool:
    if day.month not in schedule.month.values:
        return False
    by_day = day.day in schedule.day.values
    by_weekday = day.isoweekday() % 7 in schedule.weekday.values
    if schedule.day.is_any or schedule.weekday.is_any:
        return by_day and by_weekday
    return by_day or by_weekday  # cron's old rule: both given means either


def _field(text: str, bounds: _Bounds) -> Field:
    parts = [_range(part, bounds) for part in text.split(",") if part]
    return Field(
        frozenset().union(*(part.values for part in parts)), any(part.is_any for part in parts)
    )


def _range(part: str, bounds: _Bounds) -> Field:
    """`*`, `5`, `1-5`, and each with a step: `*/2`, `5/15` (which is `5-59/15`), `1-5/2`."""
    span, *steps = part.split("/")
    low, *high = span.split("-")
    is_star = low in ("*", "?")
    if is_star:
        first, last = bounds.least, bounds.most
    else:
        first = _number(low, bounds.names)
        if len(high) > 1:
            raise ScheduleError(f"too many hyphens: {part}")
        last = _number(high[0], bounds.names) if high else first
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {part}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not high:
        last = bounds.most
    _check_range(part, (first, last, step), bounds)
    return Field(frozenset(range(first, last + 1, step)), is_star and step == 1)


def _check_range(part: str, given: tuple[int, int, int], bounds: _Bounds) -> None:
    first, last, step = given
    if first < bounds.least:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({bounds.least}): {part}")
    if last > bounds.most:
        raise ScheduleError(f"end of range ({last}) above maximum ({bounds.most}): {part}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {part}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {part}")


def _number(text: str, names: Mapping[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    digits = text.removeprefix("+")
    if not all_digits(digits):
        why = "invalid syntax"
    elif whole_number(digits) < 2**63:
        return whole_number(digits)
    else:
        why = "value out of range"
    raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {why}')
