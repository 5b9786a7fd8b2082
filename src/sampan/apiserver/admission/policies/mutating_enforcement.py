"""MutatingAdmissionPolicy enforcement: one policy after the other, with reinvocation.

Job: evaluate the mutations of every policy and binding that a write concerns; put them into it.
Invariant: a policy that fails counts by its failure policy, and leaves the object as it was.
Invariant: when others have changed the object, only policies that asked for it are run again.
"""

from collections.abc import Awaitable, Mapping
from functools import partial

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.cel.evaluation import OutOfBudget, Result, result_of, with_variables_of
from sampan.api.cel.language.cost import Budget, Interrupt
from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.values import Value
from sampan.api.cel.policies import Expression, compile_mutating
from sampan.api.errors import ApiError
from sampan.api.objects import Obj, name_of
from sampan.api.resources import MUTATING_ADMISSION_POLICIES, MUTATING_POLICY_BINDINGS
from sampan.api.schema.published import NotHandled
from sampan.apiserver.admission.chain import Attributes, rejection
from sampan.apiserver.admission.matching.changed_object import put_changed, words_of
from sampan.apiserver.admission.matching.match_conditions import ConditionMetrics, ConditionsFailed
from sampan.apiserver.admission.matching.policy_request import PolicyRequest
from sampan.apiserver.admission.matching.rules import Matched, as_matched
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.policies.policies import (
    Misconfigured,
    Policies,
    Policy,
)
from sampan.apiserver.admission.policies.policy_metrics import MutationMetrics
from sampan.apiserver.admission.policies.policy_patches import (
    Unpatchable,
    apply_patch,
    patch_object,
)
from sampan.apiserver.admission.policies.policy_steps import Judge, when_compiled
from sampan.apiserver.watch.listener import follow


class Failed(Exception):
    """A mutation that could not be made."""

    def __init__(self, message: str, kind: str = "invalid_error") -> None:
        super().__init__(message)
        self.kind = kind


def judge(initializer: PluginInitializer) -> Judge:
    policies = Policies(
        initializer.registry,
        MUTATING_ADMISSION_POLICIES,
        MUTATING_POLICY_BINDINGS,
        compile_mutating,
    )
    for resource in (MUTATING_ADMISSION_POLICIES, MUTATING_POLICY_BINDINGS):
        kind = initializer.registry.kind(resource)
        follow(kind, lambda _before, _now: policies.changed(), policies.changed)
    enforcement = Enforcement(initializer, policies)

    def concerned_judged(attributes: Attributes) -> Awaitable[None] | None:
        if attributes.obj is None:
            return None  # nothing to change
        concerned = list(policies.matched(attributes))
        return enforcement.enforced(attributes, concerned) if concerned else None

    return when_compiled(policies, initializer.aid, concerned_judged)


class Enforcement:
    def __init__(self, initializer: PluginInitializer, policies: Policies) -> None:
        self._find, self._aid = initializer.registry.find, initializer.aid
        self._policies, self._clock = policies, initializer.clock
        self._schema, self._fields = initializer.schema, FieldSchema(initializer.schema)
        self._metrics = MutationMetrics(initializer.metrics)
        self._conditions = ConditionMetrics(initializer.metrics, initializer.clock)

    async def enforced(
        self, attributes: Attributes, concerned: list[tuple[Policy, Matched]]
    ) -> None:
        again = attributes.reinvoke  # the first look comes before anybody could ask for another
        asked = PolicyRequest(attributes, self._find, self._aid)
        refusals: list[str] = []
        changed_at = -1
        for index, (policy, matched) in enumerate(concerned):
            if again and policy.spec.get("reinvocationPolicy") != "IfNeeded":
                continue
            if await self._mutate(policy, matched, asked, refusals):
                changed_at = index
        if changed_at >= 0 and not again:
            attributes.reinvoke = True
        if refusals:
            raise refusal(attributes, refusals)

    async def _mutate(
        self, policy: Policy, matched: Matched, asked: PolicyRequest, refusals: list[str]
    ) -> bool:
        """Whether it changed the object."""
        trouble = self._policies.unknown_kind(policy.spec)
        if trouble:
            _note(policy, None, f"failed to configure policy: {trouble}", refusals)
            return False
        changed = False
        for binding in policy.bindings:
            if not self._policies.binding_matches(binding, asked.attributes):
                continue
            try:
                namespace = asked.attributes.namespace
                parameters = await self._aid.conversions.when_known(
                    partial(self._policies.parameters, policy, binding, namespace)
                )
            except Misconfigured as error:
                _note(policy, binding, f"failed to configure binding: {error}", refusals)
                continue
            for parameter in parameters:
                changed |= await self._run(policy, binding, parameter, matched, asked, refusals)
        return changed

    async def _run(
        self,
        policy: Policy,
        binding: Obj,
        params: Obj | None,
        matched: Matched,
        asked: PolicyRequest,
        refusals: list[str],
    ) -> bool:
        if not await self._is_meant(policy, binding, params, matched, asked, refusals):
            return False
        changed = False
        for expression in policy.compiled.mutations:
            began, kind = self._clock.monotonic(), "no_error"
            try:
                changed |= await self._apply_change(policy, expression, params, matched, asked)
            except Failed as error:
                kind = error.kind
                _note(policy, binding, str(error), refusals)
            took = self._clock.monotonic() - began
            self._metrics.count(policy.name, name_of(binding), kind, took)
        return changed

    async def _is_meant(
        self,
        policy: Policy,
        binding: Obj,
        params: Obj | None,
        matched: Matched,
        asked: PolicyRequest,
        refusals: list[str],
    ) -> bool:
        conditions = policy.compiled.conditions
        if not conditions:
            return True
        labels = ("MutatingAdmissionPolicy", policy.name, asked.attributes.operation, "admit")
        given = {**await asked.variables(matched), "params": params}
        try:
            return await self._conditions.measured(labels, conditions, asked, given)
        except ConditionsFailed as error:
            _note(policy, binding, str(error), refusals)
            return False

    async def _apply_change(
        self,
        policy: Policy,
        expression: Expression,
        params: Obj | None,
        matched: Matched,
        asked: PolicyRequest,
    ) -> bool:
        """Raises Failed. Changes the object in place: the chain holds the same one."""
        attributes = asked.attributes
        given = {**await asked.variables(matched), "params": params}
        result = await asked.decided(
            lambda interrupt: _evaluate(policy, expression, given, interrupt)
        )
        if result.error:
            raise Failed(result.error, "invalid_error" if result.compiles else "compile_error")
        applies = expression.path.endswith("applyConfiguration.expression")

        def change() -> bool:
            before = as_matched(matched, attributes, attributes.obj)
            assert before is not None
            if applies:
                new = apply_patch(self._fields, before, result.value)
            else:
                new = patch_object(before, result.value)
            return new != before and put_changed(self._schema, attributes, matched, new)

        try:
            return await self._aid.conversions.when_known(change)
        except NotHandled as error:
            raise Failed(words_of(error)) from error
        except (Unpatchable, EvaluationError) as error:
            raise Failed(str(error)) from error


def _evaluate(
    policy: Policy, expression: Expression, given: Mapping[str, Value], interrupt: Interrupt
) -> Result:
    budget = Budget(interrupt=interrupt)
    try:
        return result_of(
            expression, with_variables_of(policy.compiled.variables, given, budget), budget
        )
    except OutOfBudget as error:
        raise Failed(str(error), "out_of_budget") from error


def _note(policy: Policy, binding: Obj | None, message: str, refusals: list[str]) -> None:
    if policy.ignores_failure:
        return
    if binding is None:
        refusals.append(f'policy "{policy.name}" denied request: {message}')
    else:
        bound_by = name_of(binding)
        refusals.append(
            f"policy '{policy.name}' with binding '{bound_by}' denied request: {message}"
        )


def refusal(attributes: Attributes, refusals: list[str]) -> ApiError:
    """As upstream: 403, though the reason is that the object is invalid."""
    error = rejection(attributes, "admission request denied by policy")
    error.message, error.reason = refusals[0], "Invalid"
    error.args = (refusals[0],)
    error.details = {**error.details, "causes": [{"message": item} for item in refusals]}
    return error
