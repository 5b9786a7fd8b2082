"""NodeLogQuery: what `/logs/?query=…` asks for, and whether it may. Pure.

Job: a query → services of the machine or one file below /var/log, with options; the arguments of
    journalctl for it; what is wrong with it, in upstream's words.
Invariant: no service's name has a letter that could begin another option.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from sampan.api.errors import FieldError, invalid_value, required_value, too_many
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

MOST_LINES, MOST_SERVICES, LONGEST_NAME = 100_000, 4, 256
_UNSAFE = lazy_pattern(r"[^a-zA-Z\-_.:0-9@]+")
_NUMBER = lazy_pattern(r"[+-]?[0-9]+")
# As upstream asks for it: the ranges of RFC 3339 are the reader's to judge.
_TIME = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")

Query = Mapping[str, Sequence[str]]


class BadQuery(Exception):
    """`status`: 400 where it cannot be read, 406 where it is not to be had."""

    def __init__(self, errors: Sequence[FieldError], status: int) -> None:
        told = [str(error) for error in errors]
        super().__init__(told[0] if len(told) == 1 else f"[{', '.join(told)}]")
        self.status = status


class Options(NamedTuple):
    since: datetime | None = None
    until: datetime | None = None
    tail_lines: int | None = None
    boot: int | None = None
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class NodeLogQuery:
    services: tuple[str, ...]
    files: tuple[str, ...]
    options: Options


def read(query: Query) -> NodeLogQuery | None:
    """None: nothing is asked for. Raises BadQuery."""
    errors: list[FieldError] = []
    asked = query.get("query") or ()
    # A slash says that a file is meant.
    files = tuple(item for item in asked if "/" in item or "\\" in item)
    services = tuple(item for item in asked if item not in files and item.strip())
    if "query" in query and not files and not services:
        errors.append(invalid_value("query", list(asked), "may not be empty"))
    options = Options(
        _time(query, "sinceTime", errors), _time(query, "untilTime", errors),
        boot=_number(query, "boot", errors), tail_lines=_number(query, "tailLines", errors),
        pattern=_first(query, "pattern"),
    )  # fmt: skip
    if errors:
        raise BadQuery(errors, 400)
    found = NodeLogQuery(services, files, options)
    return found if services or files or options != Options() else None


def validate(query: NodeLogQuery, why_no_file: str) -> None:
    """`why_no_file`: why the one file is not to be had; empty: it is. Raises BadQuery."""
    errors = list(chain(_of_services(query), _of_files(query, why_no_file), _of_options(query)))
    if errors:
        raise BadQuery(errors, 406)


def journal_arguments(query: NodeLogQuery, services: Sequence[str]) -> list[str]:
    options = query.options
    found = ["--utc", "--no-pager", "--output=short-precise"]
    for name, moment in (("since", options.since), ("until", options.until)):
        if moment is not None:
            found.append(f"--{name}={_written(moment)}")
    if options.tail_lines is not None:
        found += ["--pager-end", f"--lines={options.tail_lines}"]
    found += [f"--unit={service}" for service in services]
    if options.pattern:
        found.append(f"--grep={options.pattern}")
    if options.boot is not None:
        found += ["--boot", str(options.boot)]
    return found


def file_names(service: str) -> tuple[str, str, str]:
    """Where the log of one that does not write to the journal may be, below /var/log."""
    return service, f"{service}.log", f"{service}/{service}.log"


def _first(query: Query, name: str) -> str:
    return next(iter(query.get(name) or ()), "")


def _time(query: Query, name: str, errors: list[FieldError]) -> datetime | None:
    text = _first(query, name)
    if not text:
        return None
    try:
        if _TIME.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    errors.append(invalid_value(name, text, "invalid time format"))
    return None


def _number(query: Query, name: str, errors: list[FieldError]) -> int | None:
    text = _first(query, name)
    if not text:
        return None
    if _NUMBER.fullmatch(text):
        number = int(text)
        if -(2**63) <= number < 2**63:
            return number
        why = f'strconv.Atoi: parsing "{text}": value out of range'
    else:
        why = f'strconv.Atoi: parsing "{text}": invalid syntax'
    errors.append(invalid_value(name, text, why))
    return None


def _of_services(query: NodeLogQuery) -> list[FieldError]:
    errors = []
    for service in query.services:
        if len(service.encode()) > LONGEST_NAME:
            why = f"length must be less than {LONGEST_NAME}"
            errors.append(invalid_value("query", service, why))
        elif _UNSAFE.search(service):
            why = "input contains unsupported characters"
            errors.append(invalid_value("query", service, why))
    if len(query.services) > MOST_SERVICES:
        errors.append(too_many("query", len(query.services), MOST_SERVICES))
    return errors


def _of_files(query: NodeLogQuery, why_no_file: str) -> list[FieldError]:
    files, services = list(query.files), query.services
    if not files and not services:
        return [required_value("query", "cannot be empty with options")]
    if files and services:
        both = f"[{' '.join(files)}], [{' '.join(services)}]"
        return [invalid_value("query", both, "cannot specify a file and service")]
    if len(files) > 1:
        return [invalid_value("query", files, "cannot specify more than one file")]
    if files and query.options != Options():
        return [invalid_value("query", files, "cannot specify file with options")]
    return [invalid_value("query", files, why_no_file)] if files and why_no_file else []


def _of_options(query: NodeLogQuery) -> list[FieldError]:
    errors, options = [], query.options
    if options.since and options.until and options.since > options.until:
        shown = options.until.isoformat().replace("+00:00", "Z")
        errors.append(invalid_value("untilTime", shown, "must be after `sinceTime`"))
    if options.boot is not None and options.boot > 0:
        errors.append(invalid_value("boot", options.boot, "must be less than 1"))
    if options.tail_lines is not None and not 0 <= options.tail_lines <= MOST_LINES:
        why = f"must be between 0 and {MOST_LINES}, inclusive"
        errors.append(invalid_value("tailLines", options.tail_lines, why))
    if why := _complaint(options.pattern):
        errors.append(invalid_value("pattern", options.pattern, why))
    return errors


def _complaint(pattern: str) -> str:
    if not pattern:
        return ""
    from sampan.api.cel.libraries.regex import NotRegex, compile_pattern  # rarely asked for

    try:
        compile_pattern(pattern)
    except NotRegex as error:
        return str(error)
    return ""


def _written(moment: datetime) -> str:
    """As Go's layout `2006-1-2 15:4:5`, in the zone in which it was given."""
    return (
        f"{moment.year}-{moment.month}-{moment.day} "
        f"{moment.hour:02}:{moment.minute}:{moment.second}"
    )
