"""CertificateSigning: who writes a certificate has the right to sign for its signer.

Job: ask for the verb sign on the signer, where certificate or conditions change.
"""

from collections.abc import Awaitable

from sampan.apiserver.admission.builtin.certificates import signers
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.parts import PluginParts


def plugin(parts: PluginParts) -> Steps:
    def validate(attributes: Attributes) -> Awaitable[None] | None:
        if attributes.subresource != "status":
            return None
        new, old = (((item or {}).get("status") or {}) for item in (attributes.obj, attributes.old))
        if all(new.get(item) == old.get(item) for item in ("certificate", "conditions")):
            return None
        signer = signers.signer_of(attributes)
        why = f'user not permitted to sign requests with signerName "{signer}"'
        return signers.check(parts.authorization, attributes, "sign", signer, why)

    return Steps(validate=validate)
