"""Fields behind feature gates that v1.35 has off.

Job: drop them when an object is written, as upstream does, unless the stored one uses them already.
    Pure.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, spec_of


def drop_max_unavailable(new: Obj, old: Obj | None = None) -> None:
    """MaxUnavailableStatefulSet."""
    if old is None or _rolling_update(old).get("maxUnavailable") is None:
        _rolling_update(new).pop("maxUnavailable", None)


def _rolling_update(stateful_set: Obj) -> Obj:
    strategy: Obj = spec_of(stateful_set).get("updateStrategy") or {}
    found: Obj = strategy.get("rollingUpdate") or {}
    return found


def drop_device_taints(new: Obj, old: Obj | None = None) -> None:
    """DRADeviceTaints, of ResourceSlices."""
    if old is not None and any(device.get("taints") for device in _devices(old)):
        return
    for device in _devices(new):
        device.pop("taints", None)


def _devices(item: Obj) -> Iterable[Obj]:
    devices: list[Obj] = spec_of(item).get("devices") or []
    return devices


def drop_claim_tolerations(new: Obj, old: Obj | None = None) -> None:
    """DRADeviceTaints, of ResourceClaims."""
    _drop_tolerations(spec_of(new), None if old is None else spec_of(old))


def drop_template_tolerations(new: Obj, old: Obj | None = None) -> None:
    before = None if old is None else spec_of(old).get("spec") or {}
    _drop_tolerations(spec_of(new).get("spec") or {}, before)


def _drop_tolerations(spec: Obj, before: Obj | None) -> None:
    if before is not None and any(item.get("tolerations") for item in _requests(before)):
        return
    for item in _requests(spec):
        item.pop("tolerations", None)


def _requests(spec: Obj) -> Iterable[Obj]:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if request.get("exactly"):
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()
