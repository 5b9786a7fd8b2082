"""ValidatingAdmissionPolicy enforcement: Deny, Warn and Audit.

Job: ask every policy and binding that a write concerns; do what their bindings want done.
Invariant: every binding is asked, so that warnings and notes are complete, before one refuses.
"""

from collections.abc import Awaitable

import orjson

from sampan.api.cel.policies import compile_validating
from sampan.api.errors import ApiError, from_status
from sampan.api.objects import Obj, name_of
from sampan.api.resources import VALIDATING_ADMISSION_POLICIES, VALIDATING_POLICY_BINDINGS
from sampan.apiserver.admission.chain import Attributes, rejection
from sampan.apiserver.admission.matching.match_conditions import ConditionMetrics, ConditionsFailed
from sampan.apiserver.admission.matching.policy_request import PolicyRequest
from sampan.apiserver.admission.matching.rules import Matched
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.policies.policies import (
    Misconfigured,
    Policies,
    Policy,
)
from sampan.apiserver.admission.policies.policy_metrics import PolicyMetrics
from sampan.apiserver.admission.policies.policy_steps import Judge, when_compiled
from sampan.apiserver.admission.policies.validating_verdict import (
    INVALID_ERROR,
    Decision,
    Verdict,
    verdict,
)
from sampan.apiserver.admission.policies.validating_verdict import (
    failure as failed,
)
from sampan.apiserver.watch.listener import follow

FAILURE_NOTE = "validation.policy.admission.k8s.io/validation_failure"
MOST_NOTE = 10 * 1024
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}


def judge(initializer: PluginInitializer) -> Judge:
    policies = Policies(
        initializer.registry,
        VALIDATING_ADMISSION_POLICIES,
        VALIDATING_POLICY_BINDINGS,
        compile_validating,
    )
    for resource in (VALIDATING_ADMISSION_POLICIES, VALIDATING_POLICY_BINDINGS):
        kind = initializer.registry.kind(resource)
        follow(kind, lambda _before, _now: policies.changed(), policies.changed)
    enforcement = Enforcement(initializer, policies)

    def concerned_judged(attributes: Attributes) -> Awaitable[None] | None:
        concerned = list(policies.matched(attributes))
        return enforcement.enforced(attributes, concerned) if concerned else None

    return when_compiled(policies, initializer.aid, concerned_judged)


class Enforcement:
    def __init__(self, initializer: PluginInitializer, policies: Policies) -> None:
        self._find, self._aid = initializer.registry.find, initializer.aid
        self._policies, self._clock = policies, initializer.clock
        self._metrics = PolicyMetrics(initializer.metrics)
        self._conditions = ConditionMetrics(initializer.metrics, initializer.clock)

    async def enforced(
        self, attributes: Attributes, concerned: list[tuple[Policy, Matched]]
    ) -> None:
        """Raises what the first refusal says."""
        asked = PolicyRequest(attributes, self._find, self._aid)
        refusals: list[tuple[Policy, Obj | None, Decision]] = []
        for policy, matched in concerned:
            trouble = self._policies.unknown_kind(policy.spec)
            if trouble:
                found = failed(policy, f"failed to configure policy: {trouble}")
                refusals += [(policy, None, found)] if found.denies else []
                continue
            notes: dict[str, list[str]] = {}
            for binding in policy.bindings:
                if self._policies.binding_matches(binding, attributes):
                    refusals += await self._bind(policy, binding, matched, asked, notes)
            for key, values in notes.items():
                attributes.audit[f"{policy.name}/{key}"] = ", ".join(values)
        if refusals:
            raise refusal(attributes, *refusals[0])

    async def _bind(
        self,
        policy: Policy,
        binding: Obj,
        matched: Matched,
        asked: PolicyRequest,
        notes: dict[str, list[str]],
    ) -> list[tuple[Policy, Obj | None, Decision]]:
        attributes = asked.attributes
        try:
            parameters = await self._aid.conversions.when_known(
                lambda: self._policies.parameters(policy, binding, attributes.namespace)
            )
        except Misconfigured as error:
            found = failed(policy, f"failed to configure binding: {error}")
            return [(policy, binding, found)] if found.denies else []
        refusals: list[tuple[Policy, Obj | None, Decision]] = []
        for parameter in parameters:
            began = self._clock.monotonic()
            given = {**await asked.variables(matched), "params": parameter}
            said = await self._say(policy, given, asked)
            took = self._clock.monotonic() - began
            done = [
                *self._decide(policy, binding, said, attributes, took),
                *self._note(policy, binding, said, notes, took),
            ]
            refusals += [(policy, binding, decision) for decision in done]
        return refusals

    async def _say(self, policy: Policy, given: Obj, asked: PolicyRequest) -> Verdict:
        conditions = policy.compiled.conditions
        if conditions:
            operation = asked.attributes.operation
            labels = ("ValidatingAdmissionPolicy", policy.name, operation, "validate")
            try:
                if not await self._conditions.measured(labels, conditions, asked, given):
                    return Verdict()
            except ConditionsFailed as error:
                return Verdict(((0, failed(policy, str(error))),))
        return await asked.decided(lambda interrupt: verdict(policy, given, interrupt))

    def _decide(
        self, policy: Policy, binding: Obj, said: Verdict, attributes: Attributes, took: float
    ) -> list[Decision]:
        """The decisions that refuse; warnings and notes are made here."""
        refusing: list[Decision] = []
        actions: list[str] = (binding.get("spec") or {}).get("validationActions") or []
        names = (policy.name, name_of(binding))
        for index, decision in said.decisions:
            if not decision.denies:
                self._metrics.count(*names, decision.error, "allow", took)
                continue
            for action in actions:
                self._metrics.count(*names, decision.error, action.lower(), took)
                if action == "Deny":
                    refusing.append(decision)
                elif action == "Warn":
                    attributes.warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{names[0]}' with "
                        f"binding '{names[1]}': {decision.message}"
                    )
                elif action == "Audit":
                    note = failure_note(policy, binding, index, decision, actions)
                    attributes.audit.setdefault(FAILURE_NOTE, note)
        return refusing

    def _note(
        self, policy: Policy, binding: Obj, said: Verdict, notes: dict[str, list[str]], took: float
    ) -> list[Decision]:
        """An annotation that cannot be made refuses, where failures are not ignored."""
        refusing = []
        for annotation in said.annotations:
            if annotation.error:
                refusing.append(Decision(True, annotation.error, "", INVALID_ERROR))
                self._metrics.count(policy.name, name_of(binding), INVALID_ERROR, "deny", took)
                continue
            values = notes.setdefault(annotation.key, [])
            if annotation.value[:MOST_NOTE] not in values:
                values.append(annotation.value[:MOST_NOTE])
        return refusing


def failure_note(
    policy: Policy, binding: Obj, index: int, decision: Decision, actions: list[str]
) -> str:
    failure = {
        "message": decision.message,
        "policy": policy.name,
        "binding": name_of(binding),
        "expressionIndex": index,
        "validationActions": actions,
    }
    return orjson.dumps([failure]).decode()


def refusal(
    attributes: Attributes, policy: Policy, binding: Obj | None, decision: Decision
) -> ApiError:
    """Worded as a 403; reason and code are the decision's."""
    bound = f" with binding '{name_of(binding)}'" if binding is not None else ""
    text = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {decision.message}"
    status = rejection(attributes, text).status()
    status["reason"] = decision.reason or "Invalid"
    status["code"] = _CODES.get(status["reason"], 422)
    status["details"] = {**(status.get("details") or {}), "causes": [{"message": text}]}
    return from_status(status)
