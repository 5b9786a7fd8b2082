"""Webhook configurations: the webhook plugins are loaded with the first one.

Job: one step for mutating and one for validating hooks.
Invariant: configurations of admission itself are never shown to hooks: nobody can lock themselves
    out.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sampan.api import features
from sampan.api.objects import Obj
from sampan.api.resources import MUTATING_WEBHOOK_CONFIGURATIONS as MUTATING
from sampan.api.resources import QUESTIONS, Resource
from sampan.apiserver.admission.chain import Attributes, Step
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.registry.metadata import new_uid
from sampan.apiserver.watch.listener import follow

if TYPE_CHECKING:
    from sampan.apiserver.admission.matching.match_conditions import HookConditions
    from sampan.apiserver.admission.matching.rules import Matched
    from sampan.apiserver.admission.webhooks.webhooks import Conditions, Webhooks

OWN_GROUP = "admissionregistration.k8s.io"


Call = Callable[["Webhooks", Attributes], Awaitable[None]]


def step(initializer: PluginInitializer, resource: Resource) -> Step:
    made: list[Webhooks] = []

    def asked(attributes: Attributes) -> Awaitable[None] | None:
        group, plural = attributes.resource.group, attributes.resource.plural
        if group == OWN_GROUP:
            return None
        if (group, plural) in QUESTIONS and features.enabled(
            "ExcludeAdmissionWebhookVirtualResources"
        ):
            return None
        from sampan.apiserver.admission.webhooks import webhooks

        if not made:
            made.append(_webhooks(initializer, resource))
        call = webhooks.mutate if resource is MUTATING else webhooks.validate
        return call(made[0], attributes)

    return asked


def _webhooks(initializer: PluginInitializer, resource: Resource) -> "Webhooks":
    from sampan.apiserver.admission.webhooks.hook_metrics import HookMetrics
    from sampan.apiserver.admission.webhooks.webhooks import HookParts, Webhooks

    registry = initializer.registry
    inner = HookParts(
        registry.find, registry.find_all, initializer.callers, _conditions(initializer),
        HookMetrics(initializer.metrics, initializer.clock), lambda: new_uid(initializer.rng),
        initializer.schema, initializer.conversions,
    )  # fmt: skip
    hooks = Webhooks(resource, inner)
    follow(registry.kind(resource), lambda _before, _now: hooks.changed(), hooks.changed)
    return hooks


def _conditions(initializer: PluginInitializer) -> "Conditions":
    made: list[HookConditions] = []

    def met(kind: str, hook: Obj, attributes: Attributes, matched: "Matched") -> Awaitable[bool]:
        # The language comes with the first webhook that has conditions.
        from sampan.apiserver.admission.matching.match_conditions import HookConditions

        if not made:
            made.append(
                HookConditions(initializer.registry.find, initializer.aid, initializer.metrics)
            )
        return made[0].met(kind, hook, attributes, matched)

    return met
