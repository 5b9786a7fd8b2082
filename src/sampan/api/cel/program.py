"""A compiled expression.

Job: compile once, evaluate often. Pure: what it gives depends on its variables alone.
Invariant: a program has no state: two evaluations do not see each other.
"""

from collections.abc import Mapping

from sampan.api.cel.language.checker import Checked, check
from sampan.api.cel.language.cost import PER_CALL, Budget
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CompileError, EvaluationError, Issue
from sampan.api.cel.language.evaluator import Closure, Compiler, Frame
from sampan.api.cel.language.field_names import unescape
from sampan.api.cel.language.parser import parse
from sampan.api.cel.language.types import Type
from sampan.api.cel.language.values import Value
from sampan.api.cel.literals import literal_issues
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    source: str
    result_type: Type
    _run: Closure
    _slots: int
    variables: frozenset[str] = frozenset()  # which of the environment's it speaks of

    def evaluate(self, variables: Mapping[str, Value], budget: Budget | None = None) -> Value:
        """Raises EvaluationError; CostExceeded where it, or all that share the budget, take too
        long. Whatever a lazy variable raises comes through as it is."""
        allowed = PER_CALL if budget is None else min(PER_CALL, budget.left)
        interrupt = None if budget is None else budget.interrupt
        frame = Frame(variables, self._slots, allowed, interrupt)
        try:
            return self._run(frame)
        except RecursionError as error:
            raise EvaluationError("expression recursion limit exceeded: 250") from error
        finally:
            if budget is not None:
                budget.left -= allowed - frame.unspent


def check_expression(source: str, environment: Environment) -> Checked:
    """What need not run. Raises CompileError."""
    root = parse(source, environment.macros)
    checked = check(source, root, environment)
    issues = literal_issues(root)
    if issues:
        raise CompileError(source, issues)
    return checked


def compile_expression(source: str, environment: Environment) -> Program:
    """Raises CompileError."""
    checked = check_expression(source, environment)
    compiler = Compiler(checked, unescape)
    try:
        run = compiler.block(checked.root)
    except RecursionError as error:
        issue = Issue(0, "expression recursion limit exceeded: 250")
        raise CompileError(source, [issue]) from error
    return Program(source, checked.result_type, run, compiler.slots, checked.variables)
