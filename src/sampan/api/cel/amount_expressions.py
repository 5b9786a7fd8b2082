"""Expressions of scripted amounts, compiled and evaluated.

Job: source and the moment → a quantity, or its text. Pure.
"""

import functools
import math

from sampan.api.cel.catalog import KUBERNETES
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CompileError, CostExceeded, EvaluationError
from sampan.api.cel.language.types import DOUBLE, TIMESTAMP
from sampan.api.cel.language.values import Timestamp
from sampan.api.cel.program import Program, compile_expression
from sampan.api.quantity import Quantity

MOST_PROGRAMS = 256  # that are kept
_VARIABLES = {"now": TIMESTAMP, "age": DOUBLE, "replicas": DOUBLE}


@functools.lru_cache(maxsize=MOST_PROGRAMS)
def program_of(source: str) -> Program:
    """Raises ValueError."""
    try:
        return compile_expression(source, Environment(_VARIABLES, KUBERNETES))
    except CompileError as error:
        raise ValueError(f"{source!r}: {error.issues[0].message}") from error


def evaluate(source: str, now: float, age_seconds: float, replicas: int) -> Quantity | str:
    """Raises ValueError."""
    variables = {
        "now": Timestamp(round(now * 1e9)), "age": age_seconds, "replicas": float(replicas),
    }  # fmt: skip
    try:
        found = program_of(source).evaluate(variables)
    except (EvaluationError, CostExceeded) as error:
        raise ValueError(f"{source!r}: {error}") from error
    if isinstance(found, Quantity | str):
        return found
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise ValueError(f"{source!r} gives neither a number nor a quantity")
    return str(int(found)) if found == int(found) else f"{round(found * 1000)}m"
