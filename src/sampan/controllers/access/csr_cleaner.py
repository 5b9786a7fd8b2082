"""Certificate requests are forgotten when nobody waits for them any more.

Job: delete those that are settled for an hour, or waited for in vain for a day. As upstream.
"""

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
    if left > 0:
        return Plan(again_seconds=left)
    return Plan([deletion(requests.REQUESTS, csr)])


def _ends(csr: Obj) -> float:
    for kind in ("Denied", "Failed", "Approved"):
        found = condition_of(csr, kind)
        if found is not None:
            return _time(found.get("lastUpdateTime"), csr) + SETTLED_SECONDS
    return _time(None, csr) + PENDING_SECONDS


def _time(text: str | None, csr: Obj) -> float:
    return seconds_of(text or meta_of(csr)["creationTimestamp"])


async def _plan_key(view: View, key: str) -> Plan:
    csr = view.cache(requests.REQUESTS).get(key)
    return NOTHING if csr is None else plan(csr, view.now)
