"""Validation of one write by one policy with one parameter object. Pure.

Job: conditions, validations, messages and audit annotations → decisions.
Invariant: a policy that cannot be evaluated counts by its failure policy.
"""

from collections.abc import Mapping

from sampan.api.cel.evaluation import OutOfBudget, Result, result_of, with_variables_of
from sampan.api.cel.language.cost import Budget, Interrupt
from sampan.api.cel.language.values import Value, type_of
from sampan.api.cel.policies import Expression
from sampan.api.objects import Obj
from sampan.apiserver.admission.policies.policies import Policy
from sampan.core.fast_dataclass import dataclass

MOST_MESSAGE_BYTES = 5 * 1024
NO_ERROR, COMPILE_ERROR, INVALID_ERROR, OUT = (
    "no_error",
    "compile_error",
    "invalid_error",
    "out_of_budget",
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Of one validation. `denies` is False where an error is to be ignored."""

    denies: bool
    message: str = ""
    reason: str = ""
    error: str = NO_ERROR  # by upstream's kinds


@dataclass(frozen=True, slots=True)
class Annotation:
    key: str
    value: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`decisions` by the number of their validation; those that admit are left out."""

    decisions: tuple[tuple[int, Decision], ...] = ()
    annotations: tuple[Annotation, ...] = ()


def failure(policy: Policy, message: str, error: str = INVALID_ERROR) -> Decision:
    return Decision(not policy.ignores_failure, message, "", error)


def verdict(
    policy: Policy, given: Mapping[str, Value], interrupt: Interrupt | None = None
) -> Verdict:
    """Raises Undecided."""
    compiled, budget = policy.compiled, Budget(interrupt=interrupt)
    variables = with_variables_of(compiled.variables, given, budget)
    try:
        results = [result_of(validation, variables, budget) for validation in compiled.validations]
    except OutOfBudget as error:
        return Verdict(((0, failure(policy, str(error), OUT)),))
    decisions = []
    for index, result in enumerate(results):
        found = _decision(policy, index, result, variables, budget)
        if found is not None:
            decisions.append((index, found))
    fresh = Budget(interrupt=interrupt)
    annotations = _annotations(
        policy, with_variables_of(compiled.variables, given, fresh), interrupt
    )
    return Verdict(tuple(decisions), annotations)


def _decision(
    policy: Policy, index: int, result: Result, variables: Mapping[str, Value], budget: Budget
) -> Decision | None:
    if result.error:
        kind = INVALID_ERROR if result.compiles else COMPILE_ERROR
        return failure(policy, result.error, kind)
    if result.value is True:
        return None
    validation: Obj = policy.spec["validations"][index]
    try:
        said = _message(policy.compiled.messages[index], variables, budget)
    except OutOfBudget as error:
        return failure(policy, f"failed messageExpression: {error}", OUT)
    said = said or (validation.get("message") or "").strip()
    said = said or f"failed expression: {validation.get('expression', '').strip()}"
    return Decision(True, said, validation.get("reason") or "Invalid")


def _message(expression: Expression | None, variables: Mapping[str, Value], budget: Budget) -> str:
    """What the messageExpression comes to; nothing where it fails, is too long or of two lines."""
    if expression is None:
        return ""
    found = result_of(expression, variables, budget).value
    text = found.strip() if isinstance(found, str) else ""
    return "" if "\n" in text or len(text.encode()) > MOST_MESSAGE_BYTES else text


def _annotations(
    policy: Policy, variables: Mapping[str, Value], interrupt: Interrupt | None
) -> tuple[Annotation, ...]:
    budget = Budget(interrupt=interrupt)
    found = []
    declared = policy.spec.get("auditAnnotations") or ()
    for item, expression in zip(declared, policy.compiled.annotations, strict=True):
        key = item.get("key") or ""
        try:
            result = result_of(expression, variables, budget)
        except OutOfBudget as error:
            result = Result(error=str(error))
        if result.error:
            if not policy.ignores_failure:
                found.append(Annotation(key, error=result.error))
        elif isinstance(result.value, str):
            if result.value.strip():
                found.append(Annotation(key, result.value.strip()))
        elif result.value is not None:
            why = (
                f"valueExpression '{item.get('valueExpression')}' resulted in unsupported return "
                f"type: {type_of(result.value)}. Return type must be either string or null."
            )
            found.append(Annotation(key, error=why))
    return tuple(found)
