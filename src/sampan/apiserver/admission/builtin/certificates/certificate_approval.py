"""CertificateApproval: who approves a certificate has the right to for its signer.

Job: ask for the verb approve on the signer.
"""

from collections.abc import Awaitable

from sampan.apiserver.admission.builtin.certificates import signers
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.parts import PluginParts


def plugin(parts: PluginParts) -> Steps:
    def validate(attributes: Attributes) -> Awaitable[None] | None:
        if attributes.subresource != "approval":
            return None
        signer = signers.signer_of(attributes)
        why = f'user not permitted to approve requests with signerName "{signer}"'
        return signers.check(parts.authorization, attributes, "approve", signer, why)

    return Steps(validate=validate)
