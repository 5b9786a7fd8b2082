"""Match conditions of webhooks and policies: expressions that say whether it is about this write.

Job: all of them true → it is; one false → it is not; else what went wrong. And how often.
Invariant: one false condition decides, whatever the others' errors.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from sampan.api.cel.evaluation import OutOfBudget, result_of
from sampan.api.cel.language.cost import PER_MATCH_CONDITIONS, Budget, Interrupt
from sampan.api.cel.language.values import Value
from sampan.api.cel.policies import Expression, compile_conditions
from sampan.api.objects import Obj
from sampan.apiserver.admission.chain import Attributes, Find
from sampan.apiserver.admission.matching.policy_request import PolicyRequest
from sampan.apiserver.admission.matching.rules import Matched
from sampan.apiserver.admission.plugin_initializer import Aid
from sampan.core.bounded import Bounded
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics

_START = "apiserver_admission_match_condition_"
_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)
_LABELS = ("kind", "name", "operation", "type")
MOST_KEPT = 256


class ConditionsFailed(Exception):
    """None is false, but not all are true: some could not be evaluated."""


def all_hold(
    conditions: Sequence[Expression],
    variables: Mapping[str, Value],
    interrupt: Interrupt | None = None,
) -> bool:
    """Raises ConditionsFailed, and Undecided."""
    budget = Budget(PER_MATCH_CONDITIONS, interrupt)
    errors: list[str] = []
    for condition in conditions:
        try:
            result = result_of(condition, variables, budget)
        except OutOfBudget as error:
            raise ConditionsFailed(str(error)) from error
        if result.error:
            errors.append(result.error)
        elif result.value is False:
            return False
    if errors:
        raise ConditionsFailed(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return True


class ConditionMetrics:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        about = (
            "identified by name of resource containing the match condition and broken out for each "
            "kind containing matchConditions (webhook or policy), operation and admission type "
            "(validate or admit)."
        )
        self._errors = metrics.counter(
            f"{_START}evaluation_errors_total",
            f"Admission match condition evaluation errors count, {about}",
            _LABELS,
        )
        self._exclusions = metrics.counter(
            f"{_START}exclusions_total",
            f"Admission match condition evaluation exclusions count, {about}",
            _LABELS,
        )
        self._seconds = metrics.histogram(
            f"{_START}evaluation_seconds",
            f"Admission match condition evaluation time in seconds, {about}",
            _LABELS,
            _SECONDS,
        )

    async def measured(
        self,
        labels: tuple[str, str, str, str],
        conditions: Sequence[Expression],
        asked: PolicyRequest,
        variables: Mapping[str, Value],
    ) -> bool:
        """Raises ConditionsFailed."""
        began = self._clock.monotonic()
        try:
            found = await asked.decided(
                lambda interrupt: all_hold(conditions, variables, interrupt)
            )
        except ConditionsFailed:
            self._errors.add(*labels)
            raise
        finally:
            self._seconds.observe(self._clock.monotonic() - began, *labels)
        if not found:
            self._exclusions.add(*labels)
        return found


class HookConditions:
    """Conditions of webhooks, compiled when they are first met with."""

    def __init__(self, find: Find, aid: Aid, metrics: Metrics) -> None:
        self._find, self._aid = find, aid
        self._metrics = ConditionMetrics(metrics, aid.clock)
        self._compiled: Bounded[tuple[str, ...], tuple[Expression, ...]] = Bounded(MOST_KEPT)

    async def met(self, kind: str, hook: Obj, attributes: Attributes, matched: Matched) -> bool:
        """Raises ConditionsFailed."""
        asked = PolicyRequest(attributes, self._find, self._aid)
        labels = ("webhook", str(hook.get("name") or ""), attributes.operation, kind)
        conditions = await self._of(hook.get("matchConditions") or [])
        given = await asked.variables(matched)
        return await self._metrics.measured(labels, conditions, asked, given)

    async def _of(self, conditions: list[Obj]) -> tuple[Expression, ...]:
        key = tuple(str(condition.get("expression")) for condition in conditions)
        found = self._compiled.get(key)
        if found is None:
            step = partial(compile_conditions, conditions, "matchConditions")
            found = await self._aid.compile(sum(map(len, key)), step)
            self._compiled[key] = found
        return found
