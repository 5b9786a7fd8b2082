"""One request through a policy's programs: variables when they are asked for, one budget for all.

Job: evaluate an expression of a policy and say how it went; nothing here waits.
Invariant: a variable is worked out at most once for a request.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sampan.api.cel.language.cost import Budget
from sampan.api.cel.language.errors import CostExceeded, EvaluationError
from sampan.api.cel.language.values import Value
from sampan.api.cel.policies import Expression
from sampan.core.fast_dataclass import dataclass

OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class OutOfBudget(Exception):
    """All expressions together took too long: nothing more of this policy is evaluated."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


@dataclass(frozen=True, slots=True)
class Result:
    value: Value = None
    error: str = ""
    compiles: bool = True


def result_of(expression: Expression, variables: Mapping[str, Value], budget: Budget) -> Result:
    """Raises OutOfBudget, and Undecided where an authorizer has to be asked first."""
    if expression.program is None:
        return Result(error=f"compilation error: {expression.trouble}", compiles=False)
    try:
        return Result(expression.program.evaluate(variables, budget))
    except EvaluationError as error:
        return Result(error=f"expression '{expression.text}' resulted in error: {error}")
    except CostExceeded as error:
        if budget.left <= 0:
            raise OutOfBudget from error
        return Result(error=f"expression '{expression.text}' resulted in error: {error}")


class Variables(Mapping[str, Any]):
    """`variables.name`: evaluated the first time that somebody asks."""

    def __init__(
        self, expressions: Mapping[str, Expression], others: dict[str, Value], budget: Budget
    ) -> None:
        self._expressions, self._others, self._budget = expressions, others, budget
        self._known: dict[str, Result] = {}

    def __getitem__(self, name: str) -> Value:
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._evaluate(name)
        if found.error:
            raise EvaluationError(found.error)
        return found.value

    def _evaluate(self, name: str) -> Result:
        expression = self._expressions[name]
        if expression.program is None:
            why = f'composited variable "{name}" fails to compile: {expression.trouble}'
            return Result(error=why, compiles=False)
        try:
            return Result(expression.program.evaluate(self._others, self._budget))
        except EvaluationError as error:
            return Result(error=f'composited variable "{name}" fails to evaluate: {error}')

    def __iter__(self) -> Iterator[str]:
        return iter(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)


def with_variables_of(
    expressions: Mapping[str, Expression], given: Mapping[str, Value], budget: Budget
) -> dict[str, Value]:
    """What was given, and the policy's own variables, which see it too."""
    everything = dict(given)
    everything["variables"] = Variables(expressions, everything, budget)
    return everything
