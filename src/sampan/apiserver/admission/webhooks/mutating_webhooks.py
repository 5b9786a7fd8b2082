"""MutatingAdmissionWebhook: other servers change writes.

Job: the plugin; what it does is webhooks.py's.
"""

from sampan.api.resources import MUTATING_WEBHOOK_CONFIGURATIONS
from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.parts import PluginParts
from sampan.apiserver.admission.webhooks.hook_configurations import step


def plugin(parts: PluginParts) -> Steps:
    return Steps(
        mutate=step(parts, MUTATING_WEBHOOK_CONFIGURATIONS),
        idle_without=parts.registry.kind(MUTATING_WEBHOOK_CONFIGURATIONS),
    )
