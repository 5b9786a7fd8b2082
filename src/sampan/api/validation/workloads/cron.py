"""Schedules: five fields, or a word such as @daily.

Job: what is wrong with the text of a schedule, in the words of the original's parser.
Invariant: no text raises.
"""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
# (least, most, names) of minute, hour, day of month, month, day of week
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class _Wrong(Exception):
    """Carries the sentence."""


def complaint_of(schedule: str) -> str:
    """Empty where the schedule is good."""
    try:
        _check(schedule)
    except _Wrong as wrong:
        return str(wrong)
    return ""


def _check(schedule: str) -> None:
    if schedule.startswith("@"):
        if schedule in _WORDS:
            return None
        if schedule.startswith("@every "):
            return _check_every(schedule)
        raise _Wrong(f"unrecognized descriptor: {schedule}")
    fields = schedule.split()
    if len(fields) != 5:
        raise _Wrong(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, (least, most, known) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            _check_part(part, least, most, known)
    return None


def _check_every(schedule: str) -> None:
    duration = schedule.removeprefix("@every ")
    number = duration[:-1].replace("h", "").replace("m", "").replace("s", "")
    if not number.isdecimal() or duration[-1:] not in ("h", "m", "s"):
        raise _Wrong(f'failed to parse duration {schedule}: time: invalid duration "{duration}"')


def _check_part(part: str, least: int, most: int, known: dict[str, int]) -> None:
    bounds, *step = part.split("/")
    low, *high = bounds.split("-")
    if len(high) > 1:
        raise _Wrong(f"too many hyphens: {part}")
    if low in ("*", "?"):
        start, end = least, most
    else:
        start = _number(low, known)
        end = _number(high[0], known) if high else (most if step else start)
    if len(step) > 1:
        raise _Wrong(f"too many slashes: {part}")
    if step and _number(step[0], {}) == 0:
        raise _Wrong(f"step of range should be a positive number: {part}")
    if start < least:
        raise _Wrong(f"beginning of range ({start}) below minimum ({least}): {part}")
    if end > most:
        raise _Wrong(f"end of range ({end}) above maximum ({most}): {part}")
    if start > end:
        raise _Wrong(f"beginning of range ({start}) beyond end of range ({end}): {part}")


def _number(text: str, known: dict[str, int]) -> int:
    named = known.get(text.lower())
    if named is not None:
        return named
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise _Wrong(
            f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
        )
    return int(text)
