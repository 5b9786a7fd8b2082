"""CertificateApproval: approving a CSR takes the `approve` verb on its signer.

Job: ask for the verb approve on the signer.
"""

from collections.abc import Awaitable

from sampan.apiserver.admission.builtin.certificates import signers
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    def validate(attributes: Attributes) -> Awaitable[None] | None:
        if attributes.subresource != "approval":
            return None
        signer = signers.signer_of(attributes)
        why = f'user not permitted to approve requests with signerName "{signer}"'
        return signers.check(initializer.authorization, attributes, "approve", signer, why)

    return Steps(validate=validate)
