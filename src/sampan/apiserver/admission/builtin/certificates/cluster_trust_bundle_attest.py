"""ClusterTrustBundleAttest: a signer's trust bundle takes the `attest` verb on the signer.

Job: ask for the verb attest on the signer that a trust bundle names, now or before.
"""

from collections.abc import Awaitable

from sampan.api.errors import value_text
from sampan.apiserver.admission.builtin.certificates import signers
from sampan.apiserver.admission.builtin.gc_fields import is_for_garbage_collection
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    def validate(attributes: Attributes) -> Awaitable[None] | None:
        new = attributes.obj or {}
        if is_for_garbage_collection(new, attributes.old):
            return None
        signer = str((new.get("spec") or {}).get("signerName") or "")
        if not signer:
            return None
        why = f"user not permitted to attest for signerName {value_text(signer)}"
        return signers.check(initializer.authorization, attributes, "attest", signer, why)

    return Steps(validate=validate)
