"""Resizes of pods: what the `resize` subresource may change.

Job: a pod before and after → causes: CPU and memory of containers, of init containers and of the
    pod itself, as far as the gates allow, and nothing else.
Invariant: as upstream, the whole spec is compared only where nothing was found to be wrong before.
"""

from sampan.api import features
from sampan.api.errors import FieldError, field_forbidden, invalid_value
from sampan.api.objects import Obj, annotations_of, copy_of, spec_of, status_of
from sampan.api.rules.pods import MIRROR_ANNOTATION, is_sidecar
from sampan.api.rules.qos import qos_class
from sampan.api.validation.pod_placement import put

Errors = list[FieldError]
_RESIZABLE = ("cpu", "memory")
_ONLY = "only cpu and memory resources are mutable"
_WHOLE = (
    "resize of pods with pod-level resources is forbidden when "
    "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
)
_INIT_RESTARTS = (
    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
)


def validate_resize(new: Obj, old: Obj, errors: Errors) -> None:
    """Beyond what every pod has to be."""
    for is_wrong, why in (
        (MIRROR_ANNOTATION in annotations_of(old), "static pods cannot be resized"),
        (
            (spec_of(old).get("os") or {}).get("name") == "windows",
            "windows pods cannot be resized",
        ),
    ):
        if is_wrong:
            errors[:] = [field_forbidden("[]", why)]
            return
    quality = status_of(old).get("qosClass") or qos_class(old)
    if qos_class(new) != quality:
        why = "Pod QOS Class may not change as a result of resizing"
        errors.append(invalid_value("spec", quality, why))  # as upstream: what it is
    if not _is_supported(old):
        errors.append(field_forbidden("spec", "Pod running on node without support for resize"))
    rest, was = copy_of(spec_of(new)), spec_of(old)
    if _is_set(was) or _is_set(rest):
        if not features.enabled("InPlacePodLevelResourcesVerticalScaling"):
            errors.append(field_forbidden("[]", _WHOLE))
            return
        _validate_whole(rest, was, errors)
    if _validate_order(rest, was, errors):
        _validate_containers(rest, was, errors)
        if not errors and _plain(rest) != _plain(was):
            errors.append(field_forbidden("spec", _ONLY))


def _is_set(spec: Obj) -> bool:
    resources = spec.get("resources") or {}
    return any(resources.get(kind) for kind in ("requests", "limits"))


def _is_supported(pod: Obj) -> bool:
    """By the first container that runs."""
    for item in status_of(pod).get("containerStatuses") or ():
        if "running" in (item.get("state") or {}):
            return item.get("resources") is not None
    return True


def _validate_whole(rest: Obj, was: Obj, errors: Errors) -> None:
    """What the pod asks for as a whole is put back."""
    had, has = was.get("resources"), rest.get("resources")
    if had is not None and has is None:
        errors.append(field_forbidden("spec.resources", "pod-level resources cannot be removed"))
        return
    if had is not None:
        for kind in ("requests", "limits"):
            if _is_removed(has, had, kind):
                why = f"pod-level resource {kind} cannot be removed"
                errors.append(field_forbidden(f"spec.resources.{kind}", why))
    _put_back(rest, had or {})
    if _plain(rest.get("resources") or {}) != _plain(had or {}):
        why = "only cpu and memory resources are mutable at pod-level"
        errors.append(field_forbidden("spec", why))
    put(rest, "resources", had)


def _validate_order(rest: Obj, was: Obj, errors: Errors) -> bool:
    """Of the containers: only where it is as it was the rest is looked at."""
    found = len(errors)
    for kind in ("containers", "initContainers"):
        now, before = rest.get(kind) or (), was.get(kind) or ()
        if len(now) != len(before):
            why = f"{kind} may not be added or removed on resize"
            errors.append(field_forbidden(f"spec.{kind}", why))
            continue
        for index, (item, original) in enumerate(zip(now, before, strict=True)):
            if item.get("name") != original.get("name"):
                why = f"{kind} may not be renamed or reordered on resize"
                errors.append(field_forbidden(f"spec.{kind}[{index}].name", why))
    return len(errors) == found


def _validate_containers(rest: Obj, was: Obj, errors: Errors) -> None:
    for kind in ("initContainers", "containers"):
        pairs = zip(rest.get(kind) or (), was.get(kind) or (), strict=True)
        for index, (item, original) in enumerate(pairs):
            if kind == "containers" or _may_change(original):
                _validate_kept(item, original, f"spec.{kind}[{index}].resources", errors)
    for item, original in zip(rest.get("containers") or (), was["containers"], strict=True):
        _put_back(item, original.get("resources") or {})
        if _plain(item) != _plain(original):
            errors.append(field_forbidden("spec", _ONLY))
    pairs = zip(rest.get("initContainers") or (), was.get("initContainers") or (), strict=True)
    for index, (item, original) in enumerate(pairs):
        if _plain(item) != _plain(original):
            _validate_init(item, original, f"spec.initContainers[{index}]", errors)


def _may_change(init: Obj) -> bool:
    return is_sidecar(init) or features.enabled("InPlacePodVerticalScalingInitContainers")


def _validate_init(item: Obj, original: Obj, path: str, errors: Errors) -> None:
    """One that is not as it was."""
    by_gate = features.enabled("InPlacePodVerticalScalingInitContainers")
    if not _may_change(item):
        why = "resources for non-sidecar init containers are immutable"
        errors.append(field_forbidden("spec", why))
        return
    _put_back(item, original.get("resources") or {})
    if _plain(item) != _plain(original):
        whose = "init or sidecar containers" if by_gate else "sidecar containers"
        why = f"only cpu and memory resources for {whose} are mutable"
        errors.append(field_forbidden(path if by_gate else "spec", why))
    if not is_sidecar(item):
        for policy in item.get("resizePolicy") or ():
            if policy.get("restartPolicy") == "RestartContainer":
                errors.append(field_forbidden(path, _INIT_RESTARTS))


def _validate_kept(item: Obj, original: Obj, path: str, errors: Errors) -> None:
    """Nothing may be taken away altogether."""
    for kind in ("requests", "limits"):
        if _is_removed(item.get("resources"), original.get("resources"), kind):
            why = f"resource {kind} cannot be removed"
            errors.append(field_forbidden(f"{path}.{kind}", why))


def _is_removed(now: Obj | None, before: Obj | None, kind: str) -> bool:
    return bool(((before or {}).get(kind) or {}).keys() - ((now or {}).get(kind) or {}).keys())


def _put_back(holder: Obj, had: Obj) -> None:
    """What a resize may change is made as it was."""
    resources = dict(holder.get("resources") or {})
    for kind in ("limits", "requests"):
        amounts, before = dict(resources.get(kind) or {}), had.get(kind) or {}
        for name in _RESIZABLE:
            put(amounts, name, before.get(name))
        put(resources, kind, amounts or None)
    put(holder, "resources", resources or None)


def _plain(value: object) -> object:
    """Without what is empty: that is not told from what is absent."""
    if isinstance(value, dict):
        kept = {key: _plain(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, {}, [])}
    return [_plain(item) for item in value] if isinstance(value, list) else value
