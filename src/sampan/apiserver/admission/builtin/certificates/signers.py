"""Authorization on signers: the verbs approve, sign and attest.

Job: ask for the verb on this signer, or on all of its domain.
"""

from sampan.apiserver.admission.chain import Attributes, rejection
from sampan.apiserver.authz.chain import Attributes as Asked
from sampan.apiserver.authz.chain import Authorization

GROUP = "certificates.k8s.io"


async def check(
    authorization: Authorization, attributes: Attributes, verb: str, signer: str, why: str
) -> None:
    """Raises Forbidden."""
    domain = signer.partition("/")[0]
    for name in (signer, f"{domain}/*"):
        asked = Asked(attributes.user, verb, GROUP, "signers", name=name)
        if (await authorization.decide(asked))[0]:
            return
    raise rejection(attributes, why)


def signer_of(attributes: Attributes) -> str:
    return str(((attributes.old or {}).get("spec") or {}).get("signerName") or "")
