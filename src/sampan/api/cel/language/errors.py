"""Errors of CEL: at compile time and at evaluation.

Job: the failures of CEL and their texts, which are those of cel-go.
"""

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Issue:
    """One complaint about the text of an expression."""

    at: int  # which character
    message: str

    def shown(self, source: str) -> str:
        """`ERROR: <input>:1:5: …`, with the line and a caret under the place."""
        if not source:
            return f"ERROR: <input>:1:0: {self.message}"
        before = source[: self.at]
        line = before.count("\n")
        column = self.at - (before.rfind("\n") + 1)
        lines = source.split("\n")
        text = lines[line].replace("\t", " ") if line < len(lines) else ""
        head = f"ERROR: <input>:{line + 1}:{column + 1}: {self.message}"
        return f"{head}\n | {text}\n | {'.' * column}^"


class CompileError(ValueError):
    """The expression cannot be run at all."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        super().__init__("\n".join(issue.shown(source) for issue in issues))
        self.issues = issues


class EvaluationError(Exception):
    """It ran, and one of its steps had no answer; `||` and `&&` may still do without it."""


class CostExceeded(Exception):
    """It ran for too long. No operator absorbs this."""

    def __init__(self, message: str = "operation cancelled: actual cost limit exceeded") -> None:
        super().__init__(message)


class Interrupted(CostExceeded):
    """It ran for too long by the clock, whatever it cost."""

    def __init__(self) -> None:
        super().__init__("operation interrupted")  # as cel-go


def no_overload() -> EvaluationError:
    return EvaluationError("no such overload")
