"""Timestamps and durations: their texts and their parts.

Job: RFC 3339 and Go's durations, both ways; what the clock and the calendar show in a time zone.
Invariant: nothing finer than a nanosecond is kept, nothing coarser is lost.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.values import NANO, Duration, Timestamp, int_value
from sampan.core import durations
from sampan.core.patterns import lazy_pattern

TIMES = Library("times")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = lazy_pattern(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_OFFSET = lazy_pattern(r"([+-]?)(\d\d):(\d\d)", re.ASCII)


@TIMES.function("timestamp", "string", to="timestamp")
def parse_timestamp(text: str) -> Timestamp:
    found = _STAMP.fullmatch(text)
    if found is None:
        raise EvaluationError(f'parsing time "{text}": invalid timestamp')
    year, month, day, hour, minute, second = (int(group) for group in found.groups()[:6])
    fraction, sign, hours, minutes = found.groups()[6:]
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise EvaluationError(f'parsing time "{text}": {error}') from error
    nanos = int((fraction or "0")[:9].ljust(9, "0"))
    offset = 60 * (60 * int(hours) + int(minutes)) if sign else 0
    seconds = _seconds_of(moment) - (offset if sign == "+" else -offset)
    return Timestamp(seconds * NANO + nanos)


@TIMES.function("duration", "string", to="duration")
def parse_duration(text: str) -> Duration:
    try:
        return Duration(durations.parse_duration(text))
    except durations.DurationError as error:
        raise EvaluationError(str(error)) from error


def text_of(value: Timestamp | Duration) -> str:
    if isinstance(value, Duration):
        return f"{_decimal(value.nanos)}s"
    seconds, nanos = divmod(value.nanos, NANO)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    shown = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}T{moment:%H:%M:%S}"
    return f"{shown}{fraction}Z"


def _decimal(nanos: int) -> str:
    whole, rest = divmod(abs(nanos), NANO)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if nanos < 0 else ''}{whole}{fraction}"


def _seconds_of(moment: datetime) -> int:
    passed = moment - _EPOCH
    return passed.days * 86400 + passed.seconds


def zone_of(name: str) -> tzinfo:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = 60 * int(offset[2]) + int(offset[3])
        if minutes >= 24 * 60:
            raise EvaluationError(f"unknown time zone {name}")
        return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise EvaluationError(f"unknown time zone {name}") from error


def _local(moment: Timestamp, zone: tzinfo) -> datetime:
    try:
        return (_EPOCH + timedelta(seconds=moment.nanos // NANO)).astimezone(zone)
    except OverflowError as error:
        raise EvaluationError("timestamp overflow") from error


_FIELDS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda item: item.year,
    "getMonth": lambda item: item.month - 1,
    "getDayOfYear": lambda item: item.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda item: item.day - 1,
    "getDate": lambda item: item.day,
    "getDayOfWeek": lambda item: item.isoweekday() % 7,
    "getHours": lambda item: item.hour,
    "getMinutes": lambda item: item.minute,
    "getSeconds": lambda item: item.second,
}
_SPANS = {"getHours": 3600 * NANO, "getMinutes": 60 * NANO, "getSeconds": NANO}


def _declare_field(name: str) -> None:
    part = _FIELDS[name]

    @TIMES.member("timestamp", name, to="int")
    def universal(moment: Timestamp) -> int:
        return part(_local(moment, UTC))

    @TIMES.member("timestamp", name, "string", to="int")
    def in_zone(moment: Timestamp, zone: str) -> int:
        return part(_local(moment, zone_of(zone)))


def _declare_span(name: str, nanos: int) -> None:
    @TIMES.member("duration", name, to="int")
    def whole(span: Duration) -> int:
        return _towards_zero(span.nanos, nanos)


def _towards_zero(number: int, by: int) -> int:
    return number // by if number >= 0 else -(-number // by)


@TIMES.member("timestamp", "getMilliseconds", to="int")
@TIMES.member("timestamp", "getMilliseconds", "string", to="int")
def _milliseconds(moment: Timestamp, _zone: str = "") -> int:
    return moment.nanos % NANO // 10**6


@TIMES.member("duration", "getMilliseconds", to="int")
def _span_milliseconds(span: Duration) -> int:
    return _towards_zero(span.nanos, 10**6)


@TIMES.function("timestamp", "int", to="timestamp")
def _from_seconds(seconds: int) -> Timestamp:
    return Timestamp(seconds * NANO)


@TIMES.function("duration", "int", to="duration")
def _from_nanos(nanos: int) -> Duration:
    return Duration(nanos)


@TIMES.function("timestamp", "timestamp", to="timestamp")
@TIMES.function("duration", "duration", to="duration")
def _same(value: Timestamp | Duration) -> Timestamp | Duration:
    return value


@TIMES.function("string", "timestamp", to="string")
@TIMES.function("string", "duration", to="string")
def _text(value: Timestamp | Duration) -> str:
    return text_of(value)


@TIMES.function("int", "timestamp", to="int")
def _seconds(moment: Timestamp) -> int:
    return int_value(moment.nanos // NANO)


@TIMES.function("int", "duration", to="int")
def _nanos(span: Duration) -> int:
    return span.nanos


for _name in _FIELDS:
    _declare_field(_name)
for _name, _nanos_of in _SPANS.items():
    _declare_span(_name, _nanos_of)
