"""Pod-level resources in the status: `resources` and `allocatedResources` of a pod. Pure.

Job: a pod with what it was given, what was set since → `resources` and `allocatedResources`.
"""

from collections.abc import Mapping

from sampan.api import features
from sampan.api.objects import Obj, spec_of
from sampan.api.quantity import ZERO, Quantity
from sampan.api.rules import pod_resources
from sampan.kubelet.contracts.resize_state import WHOLE, Applied
from sampan.kubelet.contracts.spec import RESIZABLE

_LEAST_MILLI = {
    "requests": 2,
    "limits": 10,
}  # of cpu; as upstream: below it the kernel is not asked


def pod_level_status(pod: Obj, applied: Applied) -> Obj:
    """Of every pod, where the gate is on."""
    if not features.enabled("InPlacePodLevelResourcesVerticalScaling"):
        return {}
    requests, limits = pod_resources.requests(pod), pod_resources.limits(pod)
    status: Obj = {"resources": _resources(pod, applied, requests, limits)}
    if requests:
        status["allocatedResources"] = _texts(requests)
    return status


def _resources(
    pod: Obj,
    applied: Applied,
    requests: Mapping[str, Quantity],
    limits: Mapping[str, Quantity],
) -> Obj:
    written = spec_of(pod).get("resources") or {}
    if ((pod.get("status") or {}).get("phase")) != "Running":
        # Nothing was set for it yet, or nothing is any more.
        found = {"requests": _texts(requests), "limits": _texts(limits)}
    else:
        has = applied.get(WHOLE) or {}
        holds = {name: limits[name] for name in limits if pod_resources.is_limited(pod, name)}
        found = {
            "requests": {**(written.get("requests") or {}), **_set(requests, "requests")},
            "limits": {**(written.get("limits") or {}), **_set(holds, "limits")},
        }
        for kind, amounts in has.items():
            found[kind] |= amounts
    return {kind: amounts for kind, amounts in found.items() if amounts}


def _set(amounts: Mapping[str, Quantity], kind: str) -> dict[str, str]:
    """As the pod's cgroup has them."""
    kept = {name: amounts[name] for name in RESIZABLE if amounts.get(name)}
    if kept.get("cpu", ZERO).milli() <= _LEAST_MILLI[kind]:
        kept.pop("cpu", None)
    return _texts(kept)


def _texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
