"""MutatingAdmissionPolicy: the plugin.

Job: the plugin; what it does is mutating_enforcement.py's.
"""

from sampan.api import features
from sampan.api.resources import MUTATING_ADMISSION_POLICIES
from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.policies.policy_steps import Judge, step


def plugin(initializer: PluginInitializer) -> Steps:
    if not features.enabled("MutatingAdmissionPolicy"):
        return Steps()

    def load() -> Judge:
        # The language and all that belongs to it come with the first policy.
        from sampan.apiserver.admission.policies.mutating_enforcement import judge

        return judge(initializer)

    return Steps(
        mutate=step(load),
        idle_without=initializer.registry.kind(MUTATING_ADMISSION_POLICIES),
    )
