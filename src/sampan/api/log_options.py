"""PodLogOptions: what `kubectl logs` may ask for, from a query and back to one. Pure.

Job: parse, validate with the original's words, and write the query that a node understands.
Invariant: options that are written as a query read back as the same options.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import urlencode

from sampan.api.errors import FieldError, field_forbidden, invalid_value, not_supported
from sampan.core.digits import all_digits, whole_number
from sampan.core.fast_dataclass import dataclass

STREAMS = ("All", "Stdout", "Stderr")


@dataclass(frozen=True, slots=True)
class LogOptions:
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None
    since_time: str | None = None  # RFC 3339
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = "All"

    def since(self, now: float) -> float | None:
        """The moment before which lines are left out."""
        if self.since_seconds is not None:
            return now - self.since_seconds
        return (
            None if self.since_time is None else datetime.fromisoformat(self.since_time).timestamp()
        )


def options_from_query(query: Mapping[str, Sequence[str]]) -> tuple[LogOptions, list[FieldError]]:
    """The options and all that is wrong with them, as ValidatePodLogOptions words it."""
    errors: list[FieldError] = []
    text = {name: values[0] for name, values in query.items() if values}
    numbers: dict[str, int | None] = {}
    for name, least in (("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)):
        numbers[name] = _number(name, text.get(name), least, errors)
    since_time = text.get("sinceTime")
    if since_time is not None:
        if numbers["sinceSeconds"] is not None:
            why = "at most one of `sinceTime` or `sinceSeconds` may be specified"
            errors.append(field_forbidden("", why))
        if not _is_moment(since_time):
            errors.append(invalid_value("sinceTime", since_time, "must be an RFC 3339 time"))
    stream = text.get("stream") or "All"
    if stream not in STREAMS:
        errors.append(not_supported("stream", stream, STREAMS))
    elif stream != "All" and numbers["tailLines"] is not None:
        why = "`tailLines` and specific `stream` are mutually exclusive for now"
        errors.append(field_forbidden("", why))
    options = LogOptions(
        follow=is_true(text.get("follow")),
        previous=is_true(text.get("previous")),
        timestamps=is_true(text.get("timestamps")),
        since_seconds=numbers["sinceSeconds"],
        since_time=since_time,
        tail_lines=numbers["tailLines"],
        limit_bytes=numbers["limitBytes"],
        stream=stream,
    )
    return options, errors


def is_true(value: str | None) -> bool:
    """As query parameters are converted to booleans: present and not one of the words for no."""
    return value is not None and value.lower() not in ("0", "false")


def _number(name: str, text: str | None, least: int, errors: list[FieldError]) -> int | None:
    if text is None:
        return None
    if not all_digits(text.removeprefix("-")):
        errors.append(invalid_value(name, text, "must be a number"))
        return None
    value = whole_number(text)
    if value < least:
        why = (
            f"must be greater than or equal to {least}" if least == 0 else "must be greater than 0"
        )
        errors.append(invalid_value(name, value, why))
    return value


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def to_query(options: LogOptions) -> str:
    given: list[tuple[str, object]] = [
        (name, "true")
        for name, wanted in (
            ("follow", options.follow),
            ("previous", options.previous),
            ("timestamps", options.timestamps),
        )
        if wanted
    ]
    values = (
        ("sinceSeconds", options.since_seconds),
        ("sinceTime", options.since_time),
        ("tailLines", options.tail_lines),
        ("limitBytes", options.limit_bytes),
        ("stream", None if options.stream == "All" else options.stream),
    )
    return urlencode(given + [(name, value) for name, value in values if value is not None])
