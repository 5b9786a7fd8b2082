"""PodCertificateRequest status: writing it takes the `sign` verb on the signer.

Job: ask for the verb sign on the signer, where the status of a PodCertificateRequest changes. Not
    to be switched off: part of the kind itself.
"""

from collections.abc import Awaitable

from sampan.api.errors import Forbidden, field_forbidden, invalid, value_text
from sampan.apiserver.admission.builtin.certificates import signers
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    async def check(attributes: Attributes, signer: str) -> None:
        try:
            await signers.check(initializer.authorization, attributes, "sign", signer, "")
        except Forbidden as refused:
            user = value_text(attributes.user.name)
            why = f'User {user} is not permitted to "sign" for signer {value_text(signer)}'
            errors = [field_forbidden("spec.signerName", why)]
            resource = attributes.resource
            raise invalid(resource.kind, resource.group, attributes.name, errors) from refused

    def validate(attributes: Attributes) -> Awaitable[None] | None:
        if attributes.subresource != "status":
            return None
        new, old = (((item or {}).get("status") or {}) for item in (attributes.obj, attributes.old))
        return None if new == old else check(attributes, signers.signer_of(attributes))

    return Steps(validate=validate)
