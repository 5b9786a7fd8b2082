"""Scripted amounts: a quantity, or an expression of time and replicas.

Job: the text of a script and the moment → a quantity; a script's series → labels and text. Pure.
Invariant: an expression sees the moment and nothing else, and may cost what one of a policy may.

    240m                            always
    = 2.0 / replicas                a load of 2, shared by those that run
    = age < 600.0 ? "100m" : "900m" more after ten minutes
    = now.getHours() >= 9 ? 4.0 : 0.5

`now` is a timestamp, `age` (in seconds) and `replicas` are doubles.
"""

from collections.abc import Iterator, Mapping

from sampan.api.objects import Obj, seconds_of
from sampan.api.quantity import Quantity, QuantityError, parse
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

SCRIPTED = "simulated.sampan.dev/"  # before the names of annotations
_SERIES = lazy_pattern(r"^\s*(?:\{([^{}]*)\}\s*)?(\S.*?)\s*$")


class BadAmount(ValueError):
    """A text that is no amount, and why."""


@dataclass(frozen=True, slots=True)
class Moment:
    now: float  # seconds since 1970
    age_seconds: float  # of what is measured
    replicas: int  # how many there are of it


def amount(text: str, moment: Moment) -> Quantity:
    """Raises BadAmount."""
    if text.startswith("="):
        return _evaluated(text[1:].strip(), moment)
    return _quantity(text.strip())


def series(text: str) -> Iterator[tuple[Mapping[str, str], str]]:
    """Of one metric, `;` between them: the labels of each, and what it says. Raises BadAmount."""
    for part in text.split(";"):
        found = _SERIES.match(part)
        if found is None:
            raise BadAmount(f"{part.strip()!r} is no amount")
        pairs = [pair.partition("=") for pair in (found[1] or "").split(",") if pair.strip()]
        yield {key.strip(): value.strip().strip('"') for key, _, value in pairs}, found[2]


def problem_of(text: str) -> str:
    """What is wrong with an amount, whenever it is asked for; empty: nothing."""
    try:
        if text.startswith("="):
            from sampan.api.cel.amount_expressions import program_of

            program_of(text[1:].strip())
        else:
            _quantity(text.strip())
    except ValueError as error:
        return str(error)
    return ""


def problem_of_series(text: str) -> str:
    """The same of all series of a metric."""
    try:
        found = [problem_of(written) for _, written in series(text)]
    except BadAmount as error:
        return str(error)
    return next(filter(None, found), "")


def moment_of(obj: Obj, replicas: int, now: float) -> Moment:
    """Of a pod since it was started; of all else since it was made."""
    status, metadata = obj.get("status") or {}, obj["metadata"]
    since = status.get("startTime") or metadata.get("creationTimestamp")
    return Moment(now, max(0.0, now - seconds_of(since)) if since else 0.0, replicas)


def _quantity(text: str) -> Quantity:
    try:
        return parse(text)
    except QuantityError as error:
        raise BadAmount(f"{text!r} is no quantity") from error


def _evaluated(source: str, moment: Moment) -> Quantity:
    from sampan.api.cel.amount_expressions import evaluate  # few scripts have any

    try:
        found = evaluate(source, moment.now, moment.age_seconds, moment.replicas)
    except ValueError as error:
        raise BadAmount(str(error)) from error
    return found if isinstance(found, Quantity) else _quantity(found)
