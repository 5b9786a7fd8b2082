"""ResourceClaims of a pod: which one stands behind an entry of its spec. Pure.

Job: an entry of spec.resourceClaims → the claim's name, and whether it was made for the pod alone.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, key_of, namespace_of, spec_of, status_of, uid_of
from sampan.core.fast_dataclass import dataclass


class ClaimNotThere(Exception):
    """In upstream's words."""


@dataclass(frozen=True, slots=True)
class PodClaim:
    entry: str  # its name in the pod's spec; empty: what the pod's extended resources stand for
    claim: str
    is_own: bool = False  # made from a template, for this pod


def claim_entries(pod: Obj) -> Sequence[Obj]:
    found: Sequence[Obj] = spec_of(pod).get("resourceClaims") or ()
    return found


def pod_claims(pod: Obj) -> list[PodClaim]:
    """Those for which none was needed are left out. Raises ClaimNotThere."""
    found = []
    status = pod.get("status") or {}
    made = {item.get("name"): item.get("resourceClaimName")
            for item in status.get("resourceClaimStatuses") or ()}  # fmt: skip
    for entry in claim_entries(pod):
        name = entry.get("name") or ""
        if entry.get("resourceClaimName"):
            found.append(PodClaim(name, entry["resourceClaimName"]))
        elif not entry.get("resourceClaimTemplateName"):
            why = "none of the supported fields are set"
            raise ClaimNotThere(f'pod "{key_of(pod)}", spec.resourceClaim "{name}": {why}')
        elif name not in made:
            raise ClaimNotThere(f'pod "{key_of(pod)}": ResourceClaim not created yet')
        elif made[name]:
            found.append(PodClaim(name, made[name], is_own=True))
    return found


def made_claims(pod: Obj) -> dict[str, str]:
    """By entry, those that were made for the pod."""
    told = status_of(pod).get("resourceClaimStatuses") or ()
    return {item["name"]: item.get("resourceClaimName") or "" for item in told}


def claim_names(pod: Obj) -> dict[str, str]:
    """By entry, as far as they are known."""
    named = {entry["name"]: entry.get("resourceClaimName") or "" for entry in claim_entries(pod)}
    return named | made_claims(pod)


def why_not_for(pod: Obj, claim: Obj) -> str:
    """Empty where the claim was made for the pod."""
    meta = claim.get("metadata") or {}
    owners = meta.get("ownerReferences") or ()
    ours = any(item.get("controller") and item.get("uid") == uid_of(pod) for item in owners)
    if ours and namespace_of(claim) == namespace_of(pod):
        return ""
    return f"ResourceClaim {key_of(claim)} was not created for pod {key_of(pod)} (pod is not owner)"


def is_reserved_for(pod: Obj, claim: Obj) -> bool:
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    return any(item.get("uid") == uid_of(pod) for item in reserved)


def drivers_of(claim: Obj) -> list[str] | None:
    """Of the devices that it was given, each once; None: it was given none yet."""
    allocation = (claim.get("status") or {}).get("allocation")
    if allocation is None:
        return None
    results = (allocation.get("devices") or {}).get("results") or ()
    return list(dict.fromkeys(str(item.get("driver") or "") for item in results))
