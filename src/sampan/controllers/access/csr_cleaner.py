"""csrcleaner: deletes CertificateSigningRequests that are settled, stale or expired.

Job: delete those that are settled for an hour, waited for in vain for a day, or whose certificate
    has expired. As upstream.
"""

import math

from sampan.api.objects import Obj, meta_of, seconds_of
from sampan.api.rules.conditions import condition_of
from sampan.controllers.access import csr_requests as requests
from sampan.controllers.actions import NOTHING, Plan, deletion
from sampan.controllers.controller import Controller, View, own_key

SETTLED_SECONDS = 3600.0
PENDING_SECONDS = 24 * 3600.0


def csr_cleaner_controller() -> Controller:
    return Controller(
        name="certificatesigningrequest-cleaner-controller",
        component="certificate-controller",
        aliases=("csrcleaner",),
        wakes={requests.REQUESTS: own_key},
        planned=_plan_key,
        workers=1,
    )


def plan(csr: Obj, now: float) -> Plan:
    left = _ends(csr) - now
    if left == math.inf:
        return NOTHING
    if left > 0:
        return Plan(again_seconds=left)
    return Plan([deletion(requests.REQUESTS, csr)])


def _ends(csr: Obj) -> float:
    ends: list[float] = []
    for kind in ("Denied", "Failed"):
        found = condition_of(csr, kind)
        if found is not None:
            ends.append(_updated_at(found) + SETTLED_SECONDS)
    approved, expires = condition_of(csr, "Approved"), _certificate_ends(csr)
    if approved is not None:
        # One whose signer takes its time is waited for as if it were pending.
        issued = bool(requests.certificate_of(csr))
        ends.append(_updated_at(approved) + (SETTLED_SECONDS if issued else PENDING_SECONDS))
        ends += [expires] if expires is not None else []
    if not (csr.get("status") or {}).get("conditions"):
        ends.append(seconds_of(meta_of(csr)["creationTimestamp"]) + PENDING_SECONDS)
    return min(ends, default=math.inf)


def _updated_at(condition: Obj) -> float:
    text = condition.get("lastUpdateTime")
    return seconds_of(text) if text else math.inf


def _certificate_ends(csr: Obj) -> float | None:
    """When the certificate is of no use any more; None where there is none that can be read."""
    text = requests.certificate_of(csr)
    if not text:
        return None
    from sampan.controllers.access import pkcs10

    return pkcs10.expiry_of(text)


async def _plan_key(view: View, key: str) -> Plan:
    csr = view.cache(requests.REQUESTS).get(key)
    return NOTHING if csr is None else plan(csr, view.now)
