"""ValidatingAdmissionPolicy: expressions that refuse writes, warn about them or have them noted.

Job: the plugin; what a policy says is validating_verdict.py's, what comes of it is
    validating_enforcement.py's.
"""

from sampan.api.resources import VALIDATING_ADMISSION_POLICIES
from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.parts import PluginParts
from sampan.apiserver.admission.policies.policy_steps import Judge, step


def plugin(parts: PluginParts) -> Steps:
    def load() -> Judge:
        # The language and all that belongs to it come with the first policy.
        from sampan.apiserver.admission.policies.validating_enforcement import judge

        return judge(parts)

    return Steps(
        validate=step(load),
        idle_without=parts.registry.kind(VALIDATING_ADMISSION_POLICIES),
    )
