"""Admission webhooks: other servers change or refuse writes.

Job: find the hooks that a write concerns, ask them, and do what they answer.
Invariant: a hook that fails counts by its failure policy; it never hangs a request beyond its
    timeout, and a redirect counts as a failure.
"""

import unicodedata
from collections.abc import Awaitable, Callable
from functools import partial

from sampan.api.errors import BadRequest, InternalError, internal_error
from sampan.api.objects import Obj, name_of
from sampan.api.resources import MUTATING_WEBHOOK_CONFIGURATIONS as MUTATING
from sampan.api.resources import Resource
from sampan.api.schema.published import NotHandled, Schema
from sampan.apiserver.admission.chain import Attributes, Find, rejection
from sampan.apiserver.admission.matching import rules
from sampan.apiserver.admission.matching.admission_request import request_of
from sampan.apiserver.admission.matching.changed_object import put_changed, words_of
from sampan.apiserver.admission.webhooks.hook_answers import (
    GROUP,
    VERSIONS,
    HookAnswers,
    HookResponse,
    denial,
    failure_text,
    patched,
)
from sampan.apiserver.admission.webhooks.hook_metrics import HookMetrics
from sampan.apiserver.extension.conversion import Conversions
from sampan.apiserver.outside.configured_callers import ConfiguredCallers
from sampan.apiserver.outside.webhook_client import CallFailed
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.tasks import all_of, give_way

log = get_logger(__name__)

HOOKS_PER_TURN = 1_000  # that are compared with a write before others have the loop
MOST_REMARKS = 256  # warnings, and notes for the audit, of one answer
OPERATION_BYTES = 100  # that one operation of a patch is about worth
_DRY = ("None", "NoneOnDryRun")
# (admit or validate, hook, write, rule) → whether it is meant; raises ConditionsFailed.
Conditions = Callable[[str, Obj, Attributes, rules.Matched], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Hook:
    configuration: str
    spec: Obj

    @property
    def name(self) -> str:
        return str(self.spec.get("name") or "")

    @property
    def ignores_failure(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


@dataclass(frozen=True, slots=True)
class HookParts:
    """What hooks are found and called with."""

    find: Find
    find_all: Callable[[Resource], list[Obj]]
    callers: ConfiguredCallers
    conditions: Conditions
    metrics: HookMetrics
    new_uid: Callable[[], str]
    schema: Schema
    conversions: Conversions


class Webhooks:
    """The hooks of one kind of configuration; forgotten whenever one of them changes."""

    def __init__(self, resource: Resource, parts: HookParts) -> None:
        """To be told by `changed` when a configuration is another one."""
        self._resource, self._find, self._find_all = resource, parts.find, parts.find_all
        self._callers, self._conditions = parts.callers, parts.conditions
        self._metrics, self._new_uid, self.schema = parts.metrics, parts.new_uid, parts.schema
        self.conversions = parts.conversions
        self._answers = HookAnswers(parts.schema)
        self._hooks: list[Hook] | None = None

    def changed(self) -> None:
        self._hooks = None

    def hooks(self) -> list[Hook]:
        """By the configurations' names, each in its own order."""
        if self._hooks is None:
            self._hooks = [
                Hook(name_of(item), spec)
                for item in sorted(self._find_all(self._resource), key=name_of)
                for spec in item.get("webhooks") or ()
            ]
        return self._hooks

    async def concerned_hooks(self, attributes: Attributes) -> list[tuple[Hook, rules.Matched]]:
        found = []
        for number, hook in enumerate(self.hooks(), 1):
            if number % HOOKS_PER_TURN == 0:
                await give_way()
            matched = self._match(hook, attributes)
            if matched is None:
                continue
            if await self._meets_conditions(hook, attributes, matched):
                found.append((hook, matched))
        return found

    async def ask(
        self, hook: Hook, matched: rules.Matched, attributes: Attributes
    ) -> HookResponse | None:
        """The response, if it allows the write; None: it failed, and that is to be ignored."""
        if attributes.dry_run and hook.spec.get("sideEffects") not in _DRY:
            raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        with self._metrics.measured(hook.name, self._kind, attributes.operation) as said:
            try:
                response = await self._response(hook, matched, attributes)
                attributes.marks.at(f"webhook {hook.name}")
            except CallFailed as error:
                said.failed(hook.ignores_failure)
                self._handle_failure(hook, attributes, error)
                return None
            self._note(hook, response, attributes)
            if not response.allowed:
                refusal = denial(hook.name, response.status)
                refusal.warnings = [*attributes.warnings]
                said.refused(refusal.code)
                raise refusal
        return response

    @property
    def _kind(self) -> str:
        return "admit" if self._resource is MUTATING else "validating"

    def _match(self, hook: Hook, attributes: Attributes) -> rules.Matched | None:
        spec = hook.spec
        equivalent = spec.get("matchPolicy") != "Exact"
        matched = rules.match_rules(spec.get("rules") or (), attributes, equivalent)
        if matched is None or not rules.object_matches(spec.get("objectSelector"), attributes):
            return None
        if not rules.namespace_matches(spec.get("namespaceSelector"), attributes, self._find):
            return None
        return matched

    async def _meets_conditions(
        self, hook: Hook, attributes: Attributes, matched: rules.Matched
    ) -> bool:
        if not hook.spec.get("matchConditions"):
            return True
        from sampan.apiserver.admission.matching.match_conditions import ConditionsFailed

        try:
            kind = "admit" if self._resource is MUTATING else "validate"
            return await self._conditions(kind, hook.spec, attributes, matched)
        except ConditionsFailed as error:
            # As upstream: the hook is not asked, whatever its failure policy.
            if hook.ignores_failure:
                return False
            raise rejection(attributes, str(error)) from error

    def _handle_failure(self, hook: Hook, attributes: Attributes, error: CallFailed) -> None:
        if not hook.ignores_failure:
            raise internal_error(failure_text(hook.name, error)) from error
        log.warning("webhook failed, ignored by its failurePolicy", hook=hook.name, error=error)
        word = "mutation" if self._resource is MUTATING else "validating"
        key = f"failed-open.{word}.webhook.admission.k8s.io/{hook.configuration}"
        attributes.audit[key] = hook.name

    async def _response(
        self, hook: Hook, matched: rules.Matched, attributes: Attributes
    ) -> HookResponse:
        """Raises CallFailed."""
        uid = self._new_uid()
        offered = hook.spec.get("admissionReviewVersions") or ["v1"]
        version = next((item for item in offered if item in VERSIONS), None)
        if version is None:
            raise CallFailed(f"webhook does not accept known AdmissionReview versions: {offered}")
        request = await self.conversions.when_known(lambda: request_of(attributes, matched, uid))
        review = {
            "kind": "AdmissionReview",
            "apiVersion": f"{GROUP}/{version}",
            "request": request,
        }
        timeout = float(hook.spec.get("timeoutSeconds") or 10)
        config = hook.spec.get("clientConfig") or {}
        answer = await self._callers.post(config, review, timeout)
        mutating = self._resource is MUTATING
        read = partial(self._answers.response_of, answer, version, uid, mutating)
        return await self.conversions.beside(_patch_size(answer), read)

    def _note(self, hook: Hook, response: HookResponse, attributes: Attributes) -> None:
        told = response.warnings[:MOST_REMARKS]
        attributes.warnings += [item for item in told if item and _is_one_line(item)]
        for key, value in response.audit[:MOST_REMARKS]:
            attributes.audit[f"{hook.name}/{key}"] = value


def _patch_size(answer: Obj) -> int:
    response = answer.get("response")
    patch = response.get("patch") if isinstance(response, dict) else ""
    return len(patch) if isinstance(patch, str) else 0


def _is_one_line(text: str) -> bool:
    """Whether it can stand in a header, as upstream: else it is left out."""
    return not any(unicodedata.category(letter) == "Cc" for letter in text)


async def mutate(hooks: Webhooks, attributes: Attributes) -> None:
    changed_at = await _round(hooks, attributes, await hooks.concerned_hooks(attributes), [])
    again = [
        (index, hook)
        for index, hook in enumerate(await hooks.concerned_hooks(attributes))
        if hook[0].spec.get("reinvocationPolicy") == "IfNeeded"
        and any(at > index for at in changed_at)
    ]
    if again:
        await _round(hooks, attributes, [item for _, item in again], [])
    attributes.reinvoke = attributes.reinvoke or bool(changed_at)


async def validate(hooks: Webhooks, attributes: Attributes) -> None:
    found = await hooks.concerned_hooks(attributes)
    await all_of(hooks.ask(hook, matched, attributes) for hook, matched in found)


async def _round(
    hooks: Webhooks,
    attributes: Attributes,
    concerned: list[tuple[Hook, rules.Matched]],
    changed_at: list[int],
) -> list[int]:
    """One after the other, each seeing what the one before has made of the object."""
    for index, (hook, matched) in enumerate(concerned):
        response = await hooks.ask(hook, matched, attributes)
        if response is None or response.operations is None:
            continue
        if attributes.obj is None:
            raise internal_error(
                f'admission webhook "{hook.name}" attempted to modify the object, which is not '
                "supported for this operation"
            )
        patch = partial(_patch, hooks.schema, matched, attributes, response)
        many = OPERATION_BYTES * len(response.operations)
        if await hooks.conversions.when_known(patch, many):
            changed_at.append(index)
    return changed_at


def _patch(
    schema: Schema, matched: rules.Matched, attributes: Attributes, response: HookResponse
) -> bool:
    """True where it made another object. Raises InternalError."""
    before = rules.as_matched(matched, attributes, attributes.obj)
    assert before is not None
    new = patched(before, response)
    try:
        return isinstance(new, dict) and put_changed(schema, attributes, matched, new)
    except NotHandled as error:
        raise InternalError(words_of(error)) from error
