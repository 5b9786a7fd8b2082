"""ValidatingAdmissionPolicy: the plugin.

Job: the plugin; what a policy says is validating_verdict.py's, what comes of it is
    validating_enforcement.py's.
"""

from sampan.api.resources import VALIDATING_ADMISSION_POLICIES
from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.policies.policy_steps import Judge, step


def plugin(initializer: PluginInitializer) -> Steps:
    def load() -> Judge:
        # The language and all that belongs to it come with the first policy.
        from sampan.apiserver.admission.policies.validating_enforcement import judge

        return judge(initializer)

    return Steps(
        validate=step(load),
        idle_without=initializer.registry.kind(VALIDATING_ADMISSION_POLICIES),
    )
