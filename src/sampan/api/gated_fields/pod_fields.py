"""Gated fields of pods that do not just go.

Job: what upstream does to a pod's spec whose stop signals, restart rules, image volumes or
    procMount are behind a gate that is off. Pure.
Invariant: only who holds such a field is touched: the rest may be others', too.
"""

from collections.abc import Callable, Iterator, Mapping

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

_LISTS = ("containers", "initContainers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Gated:
    is_used: Callable[[Obj], bool]  # of the spec that is stored
    drop: Callable[[Obj], None]


def _containers(spec: Obj, *lists: str) -> Iterator[Obj]:
    for name in lists or _LISTS:
        yield from (item for item in spec.get(name) or () if isinstance(item, dict))


def _lifecycle(container: Obj) -> Obj:
    found: Obj = container.get("lifecycle") or {}
    return found


def _has_stop_signals(spec: Obj) -> bool:
    return any(_lifecycle(item).get("stopSignal") for item in _containers(spec))


def _drop_stop_signals(spec: Obj) -> None:
    """A lifecycle of which nothing is left goes, too."""
    for item in _containers(spec):
        lifecycle = _lifecycle(item)
        if "stopSignal" in lifecycle:
            del lifecycle["stopSignal"]
            if not lifecycle:
                del item["lifecycle"]


def _has_restart_rules(spec: Obj) -> bool:
    return any(item.get("restartPolicy") for item in _containers(spec, "containers")) or any(
        item.get("restartPolicy") not in (None, "Always") or item.get("restartPolicyRules")
        for item in _containers(spec, "initContainers")
    )


def _drop_restart_rules(spec: Obj) -> None:
    """An init container stays a sidecar."""
    for item in _containers(spec):
        _remove(item, "restartPolicyRules")
    for item in _containers(spec, "containers", "ephemeralContainers"):
        _remove(item, "restartPolicy")
    for item in _containers(spec, "initContainers"):
        if item.get("restartPolicy") != "Always":
            _remove(item, "restartPolicy")


def _remove(holder: Obj, key: str) -> None:
    if key in holder:
        del holder[key]


def _image_volumes(spec: Obj) -> set[str]:
    return {item.get("name") or "" for item in spec.get("volumes") or () if item.get("image")}


def _drop_image_volumes(spec: Obj) -> None:
    """With their mounts."""
    names = _image_volumes(spec)
    if not names:
        return
    _keep(spec, "volumes", lambda item: not item.get("image"))
    for container in _containers(spec):
        _keep(container, "volumeMounts", lambda item: item.get("name") not in names)


def _keep(holder: Obj, key: str, wanted: Callable[[Obj], bool]) -> None:
    there = holder.get(key) or []
    kept = [item for item in there if wanted(item)]
    if not kept:
        _remove(holder, key)
    elif len(kept) < len(there):
        holder[key] = kept


def _security(container: Obj) -> Obj:
    found: Obj = container.get("securityContext") or {}
    return found


def _has_proc_mount(spec: Obj) -> bool:
    return any(
        _security(item).get("procMount") not in (None, "Default") for item in _containers(spec)
    )


def _default_proc_mount(spec: Obj) -> None:
    for item in _containers(spec):
        if _security(item).get("procMount") not in (None, "Default"):
            item["securityContext"]["procMount"] = "Default"


SPECIAL: Mapping[str, Gated] = {
    "ContainerRestartRules": Gated(_has_restart_rules, _drop_restart_rules),
    "ContainerStopSignals": Gated(_has_stop_signals, _drop_stop_signals),
    "ImageVolume": Gated(lambda spec: bool(_image_volumes(spec)), _drop_image_volumes),
    "ProcMountType": Gated(_has_proc_mount, _default_proc_mount),
}
