"""Expressions of Stages: what they ask of an object, by a jq query or by CEL.

Job: expression and object → whether it is so, a span of time, a weight. Pure.
Invariant: an expression that cannot be evaluated of an object says nothing of it.
"""

from collections.abc import Sequence
from typing import Any

from sampan.api.cel.catalog import KUBERNETES
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CompileError, CostExceeded, EvaluationError
from sampan.api.cel.language.types import DYN
from sampan.api.cel.language.values import Duration
from sampan.api.cel.program import Program, compile_expression
from sampan.api.objects import Obj, seconds_of
from sampan.controllers.stages.jq_query import Query
from sampan.core.digits import whole_number
from sampan.core.durations import NANO, DurationError, parse_duration
from sampan.core.fast_dataclass import dataclass

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
Expression = Query | Program


@dataclass(frozen=True, slots=True)
class Requirement:
    """A query, and what is wanted of what it finds."""

    query: Query
    operator: str
    values: Sequence[str] = ()

    def matches(self, obj: Obj) -> bool:
        found = self.query.find(obj) or ()
        if self.operator in ("Exists", "DoesNotExist"):
            return bool(found) == (self.operator == "Exists")
        has_one = any(_text(each) in self.values for each in found)
        return has_one == (self.operator == "In")


def compiled(source: str) -> Program:
    """CEL, in which `self` is the object. Raises ValueError."""
    try:
        return compile_expression(source, Environment({"self": DYN}, KUBERNETES))
    except CompileError as error:
        raise ValueError(f"{source!r}: {error.issues[0].message}") from error


def is_so(condition: Program, obj: Obj) -> bool:
    return _evaluated(condition, obj) is True


def seconds_from(expression: Expression | None, obj: Obj, now: float) -> float | None:
    """A span of time, or that until a moment. None: it says nothing."""
    found = _first(expression, obj)
    if isinstance(found, Duration):
        return found.nanos / NANO
    if not isinstance(found, str):
        return None
    try:
        return seconds_of(found) - now
    except ValueError:
        pass
    try:
        return parse_duration(found) / NANO
    except DurationError:
        return None


def weight_from(expression: Expression | None, obj: Obj) -> int | None:
    """None: it says nothing."""
    found = _first(expression, obj)
    if isinstance(found, str):
        try:
            return whole_number(found)
        except ValueError:
            return 0  # as KWOK: it stands behind those that have one
    return int(found) if isinstance(found, int | float) else None


def _first(expression: Expression | None, obj: Obj) -> Any:
    if expression is None:
        return None
    if isinstance(expression, Program):
        return _evaluated(expression, obj)
    return next(iter(expression.find(obj) or ()), None)


def _evaluated(program: Program, obj: Obj) -> Any:
    try:
        return program.evaluate({"self": obj})
    except (EvaluationError, CostExceeded):
        return None


def _text(value: Any) -> str | None:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value:g}" if isinstance(value, float) else str(value)
    return None
