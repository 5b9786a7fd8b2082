"""CertificateSigning: writing a certificate takes the `sign` verb on its signer.

Job: ask for the verb sign on the signer, where certificate or conditions change.
"""

from collections.abc import Awaitable

from sampan.apiserver.admission.builtin.certificates import signers
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    def validate(attributes: Attributes) -> Awaitable[None] | None:
        if attributes.subresource != "status":
            return None
        new, old = (((item or {}).get("status") or {}) for item in (attributes.obj, attributes.old))
        if all(new.get(item) == old.get(item) for item in ("certificate", "conditions")):
            return None
        signer = signers.signer_of(attributes)
        why = f'user not permitted to sign requests with signerName "{signer}"'
        return signers.check(initializer.authorization, attributes, "sign", signer, why)

    return Steps(validate=validate)
