"""ValidatingAdmissionWebhook: other servers refuse writes.

Job: the plugin; what it does is webhooks.py's.
"""

from sampan.api.resources import VALIDATING_WEBHOOK_CONFIGURATIONS
from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.parts import PluginParts
from sampan.apiserver.admission.webhooks.hook_configurations import step


def plugin(parts: PluginParts) -> Steps:
    return Steps(
        validate=step(parts, VALIDATING_WEBHOOK_CONFIGURATIONS),
        idle_without=parts.registry.kind(VALIDATING_WEBHOOK_CONFIGURATIONS),
    )
