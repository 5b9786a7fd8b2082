"""Defaults of priority classes, priority levels, flow schemas and device requests.

Job: fill in policies and shares, as upstream does.
Invariant: a pod of a priority class may preempt, unless the class says otherwise.
"""

from sampan.api.defaults.fill import fill, part_of, spec_of
from sampan.api.objects import Obj


def default_priority_class(obj: Obj) -> None:
    fill(obj, preemptionPolicy="PreemptLowerPriority")


def default_pod_certificate(obj: Obj) -> None:
    spec = spec_of(obj)
    if spec.get("maxExpirationSeconds") is None:
        spec["maxExpirationSeconds"] = 24 * 3600


def default_flow_schema(obj: Obj) -> None:
    spec = spec_of(obj)
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def default_priority_level(obj: Obj) -> None:
    spec = spec_of(obj)
    if spec.get("type") == "Exempt":
        fill(part_of(spec, "exempt"), nominalConcurrencyShares=0, lendablePercent=0)
    limited = spec.get("limited")
    if limited is None:
        return
    fill(limited, nominalConcurrencyShares=30, lendablePercent=0)
    queuing = (limited.get("limitResponse") or {}).get("queuing")
    if queuing is not None:
        for key, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
            if not queuing.get(key):
                queuing[key] = value


def default_resource_claim(obj: Obj) -> None:
    _default_requests(spec_of(obj))


def default_resource_claim_template(obj: Obj) -> None:
    _default_requests(part_of(spec_of(obj), "spec"))


def default_flat_claim(obj: Obj) -> None:
    """Of v1beta1, where a request for one class says so itself."""
    _default_flat_requests(spec_of(obj))


def default_flat_claim_template(obj: Obj) -> None:
    _default_flat_requests(part_of(spec_of(obj), "spec"))


def _default_flat_requests(spec: Obj) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if request.get("deviceClassName"):
            _default_count(request)
        for alternative in request.get("firstAvailable") or ():
            _default_count(alternative)


def _default_requests(spec: Obj) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        exactly = request.get("exactly")
        if exactly is not None:
            _default_count(exactly)
        for alternative in request.get("firstAvailable") or ():
            _default_count(alternative)


def _default_count(request: Obj) -> None:
    for toleration in request.get("tolerations") or ():
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
