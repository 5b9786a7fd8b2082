"""What a container's status says of the health of the devices that it has by claims. Pure.

Job: claims that are prepared, and what is known of their devices → ResourceStatuses.
"""

from collections.abc import Callable, Mapping

from sampan.api import features
from sampan.api.objects import Obj, namespace_of
from sampan.api.rules.pod_claims import claim_names, made_claims
from sampan.api.rules.pods import containers
from sampan.kubelet.dra.claim_infos import ClaimInfo, Key, PreparedDevice

# Of a driver's device, by its pool and name: a word, and what the driver says about it.
DeviceHealth = Callable[[str, str, str], tuple[str, str]]


def health_of_claims(
    pod: Obj, container: str, infos: Mapping[Key, ClaimInfo], device_health: DeviceHealth
) -> list[Obj]:
    """As upstream: of the request that is asked for, each device once; before v1.36 of claims that
    were made for the pod, whatever is asked for."""
    by_request = features.changed("DeviceHealthByRequest")
    named = claim_names(pod) if by_request else made_claims(pod)
    found = []
    for claim in _claims_asked(pod, container):
        info = infos.get((namespace_of(pod), named.get(claim["name"]) or ""))
        if info is None:
            continue
        request = claim.get("request") or ""
        devices: list[Obj] = []
        for driver, listed in info.drivers.items():
            for device in listed:
                if not by_request or _is_for(device, request):
                    shown = _shown(driver, device, device_health)
                    known = {item["resourceID"] for item in devices} if by_request else ()
                    devices += [shown] if shown["resourceID"] not in known else []
        if devices:
            name = f"claim:{claim['name']}" + (f"/{request}" if request else "")
            found.append({"name": name, "resources": devices})
    return found


def _claims_asked(pod: Obj, container: str) -> list[Obj]:
    return [
        claim
        for item in containers(pod)
        if item["name"] == container
        for claim in (item.get("resources") or {}).get("claims") or ()
    ]


def _is_for(device: PreparedDevice, request: str) -> bool:
    """`request`: of a claim, and after a slash the alternative that was chosen."""
    return not request or not device.requests or request.partition("/")[0] in device.requests


def _shown(driver: str, device: PreparedDevice, device_health: DeviceHealth) -> Obj:
    health, message = device_health(driver, device.pool, device.device)
    name = (*device.cdi_devices, f"{driver}/{device.pool}/{device.device}")[0]
    shown: Obj = {"resourceID": name, "health": health}
    if message and features.enabled("ResourceHealthStatusMessage"):
        shown["message"] = message
    return shown
