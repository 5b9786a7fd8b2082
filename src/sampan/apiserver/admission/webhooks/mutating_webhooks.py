"""MutatingAdmissionWebhook: other servers change writes.

Job: the plugin; what it does is webhooks.py's.
"""

from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.parts import PluginParts
from sampan.apiserver.admission.webhooks.hook_configurations import MUTATING, step


def plugin(parts: PluginParts) -> Steps:
    return Steps(mutate=step(parts, MUTATING), idle_without=parts.registry.kind(MUTATING))
