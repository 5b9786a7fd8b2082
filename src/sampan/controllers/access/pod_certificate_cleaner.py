"""PodCertificateRequest cleaner: deletes requests a quarter of an hour after their creation.

Job: delete those that are older. As upstream, where PodCertificateRequest is on.
"""

from sampan.api.objects import Obj, meta_of, seconds_of
from sampan.api.resources import POD_CERTIFICATE_REQUESTS, Resource
from sampan.api.served import spoken
from sampan.controllers.actions import NOTHING, Plan, deletion
from sampan.controllers.controller import Controller, View, own_key

KEPT_SECONDS = 900.0


def pod_certificate_cleaner() -> Controller:
    requests = spoken(POD_CERTIFICATE_REQUESTS)

    async def planned(view: View, key: str) -> Plan:
        request = view.cache(requests).get(key)
        return NOTHING if request is None else plan(requests, request, view.now)

    return Controller(
        name="podcertificaterequest-cleaner-controller",
        component="podcertificaterequestcleaner",
        wakes={requests: own_key},
        planned=planned,
        optional=(requests,),
        workers=1,
    )


def plan(resource: Resource, request: Obj, now: float) -> Plan:
    left = seconds_of(meta_of(request)["creationTimestamp"]) + KEPT_SECONDS - now
    return Plan(again_seconds=left) if left > 0 else Plan([deletion(resource, request)])
