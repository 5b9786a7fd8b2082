"""ClusterTrustBundleAttest: a signer's trust bundle takes the `attest` verb on the signer.

Job: ask for the verb attest on the signer that a trust bundle names, now or before.
"""

from collections.abc import Awaitable

from sampan.api.objects import Obj
from sampan.apiserver.admission.builtin.certificates import signers
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    def validate(attributes: Attributes) -> Awaitable[None] | None:
        new, old = attributes.obj or {}, attributes.old or {}
        if attributes.old is not None and _is_unchanged(new, old):
            return None
        signer = str((new.get("spec") or {}).get("signerName") or "")
        if not signer:
            return None
        why = f"user not permitted to attest for signerName {signer}"
        return signers.check(initializer.authorization, attributes, "attest", signer, why)

    return Steps(validate=validate)


def _is_unchanged(new: Obj, old: Obj) -> bool:
    """As upstream: finalizers and the like may be changed by whoever may update."""
    return new.get("spec") == old.get("spec")
