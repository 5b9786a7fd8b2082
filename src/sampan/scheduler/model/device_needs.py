"""Which claims to devices a pod has. Pure.

Job: a pod's resourceClaims, and the names that were given to those from templates.
"""

from sampan.api.objects import Obj, key_of, namespace_of, uid_of
from sampan.api.rules.pod_claims import ClaimNotThere, claim_entries, pod_claims
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DeviceNeeds:
    # Claim, and the uid of the pod that must own it (none: anybody may use it).
    claims: tuple[tuple[str, str], ...] = ()
    pod: str = ""  # for messages about claims of its own
    problem: str = ""

    def __bool__(self) -> bool:
        return bool(self.claims or self.problem)


NO_DEVICES = DeviceNeeds()


def needs_of(pod: Obj) -> DeviceNeeds:
    if not claim_entries(pod):
        return NO_DEVICES
    try:
        named = pod_claims(pod)
    except ClaimNotThere as problem:
        return DeviceNeeds(pod=key_of(pod), problem=str(problem))
    claims = [
        (f"{namespace_of(pod)}/{wanted.claim}", uid_of(pod) if wanted.is_own else "")
        for wanted in named
    ]
    own = any(owner for _, owner in claims)
    return DeviceNeeds(tuple(dict.fromkeys(claims)), key_of(pod) if own else "")
