"""MutatingAdmissionWebhook: other servers change writes.

Job: the plugin; what it does is webhooks.py's.
"""

from sampan.api.resources import MUTATING_WEBHOOK_CONFIGURATIONS
from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.webhooks.hook_configurations import step


def plugin(initializer: PluginInitializer) -> Steps:
    return Steps(
        mutate=step(initializer, MUTATING_WEBHOOK_CONFIGURATIONS),
        idle_without=initializer.registry.kind(MUTATING_WEBHOOK_CONFIGURATIONS),
    )
