"""Which claims to devices a pod has. Pure.

Job: a pod's resourceClaims, and the names that were given to those from templates.
"""

from sampan.api.objects import Obj, key_of, namespace_of, uid_of
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
    entries = (pod.get("spec") or {}).get("resourceClaims") or ()
    if not entries:
        return NO_DEVICES
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    made = {status.get("name"): status.get("resourceClaimName") for status in statuses}
    namespace = namespace_of(pod)
    claims: list[tuple[str, str]] = []
    for entry in entries:
        if entry.get("resourceClaimName"):
            claims.append((f"{namespace}/{entry['resourceClaimName']}", ""))
        elif entry.get("name") not in made:
            return DeviceNeeds(
                pod=key_of(pod), problem=f'pod "{key_of(pod)}": ResourceClaim not created yet'
            )
        elif made[entry["name"]]:  # else none was needed
            claims.append((f"{namespace}/{made[entry['name']]}", uid_of(pod)))
    own = any(owner for _, owner in claims)
    return DeviceNeeds(tuple(dict.fromkeys(claims)), key_of(pod) if own else "")
