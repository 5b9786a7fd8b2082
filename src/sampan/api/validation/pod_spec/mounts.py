"""Where a container sees its volumes: mounts and raw block devices.

Job: volumeMounts and volumeDevices → causes.
Invariant: every mount names a volume of the pod, and no two share a path.
"""

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    field_not_found,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj
from sampan.api.validation.fields import has_backsteps, validate_descending_path

Errors = list[FieldError]
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def validate_mounts(container: Obj, volumes: dict[str, Obj], path: str, errors: Errors) -> None:
    mounts, devices = container.get("volumeMounts"), container.get("volumeDevices")
    if mounts:
        taken = {
            device.get("name") or "": device.get("devicePath") or "" for device in devices or ()
        }
        seen: set[str] = set()
        for index, mount in enumerate(mounts):
            here = f"{path}.volumeMounts[{index}]"
            _validate_mount(mount, volumes, seen, here, errors)
            _validate_overlap(mount, taken, "mountPath", here, errors)
            # Upstream names the list here, without the index.
            if mount.get("mountPropagation") is not None:
                _validate_propagation(
                    mount["mountPropagation"], container, f"{path}.volumeMounts", errors
                )
            if mount.get("recursiveReadOnly") is not None:
                _validate_recursive(mount, f"{path}.volumeMounts.recursiveReadOnly", errors)
    if devices:
        taken = {item.get("name") or "": item.get("mountPath") or "" for item in mounts or ()}
        _validate_devices(devices, taken, volumes, f"{path}.volumeDevices", errors)


def _validate_mount(
    mount: Obj, volumes: dict[str, Obj], seen: set[str], path: str, errors: Errors
) -> None:
    name, mount_path = mount.get("name") or "", mount.get("mountPath") or ""
    if not name:
        errors.append(required_value(f"{path}.name"))
    if name not in volumes:
        errors.append(field_not_found(f"{path}.name", name))
    if not mount_path:
        errors.append(required_value(f"{path}.mountPath"))
    if mount_path in seen:
        errors.append(invalid_value(f"{path}.mountPath", mount_path, "must be unique"))
    seen.add(mount_path)
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    # Upstream names the list here, without the index.
    listed = path.rpartition("[")[0]
    if sub_path:
        validate_descending_path(sub_path, f"{listed}.subPath", errors)
    if expression:
        if sub_path:
            why = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid_value(f"{path}.subPathExpr", expression, why))
        validate_descending_path(expression, f"{listed}.subPathExpr", errors)


def _validate_overlap(
    mount: Obj, taken: dict[str, str], key: str, path: str, errors: Errors
) -> None:
    other = "volumeDevices" if key == "mountPath" else "volumeMounts"
    name, where = mount.get("name") or "", mount.get(key) or ""
    if name in taken:
        why = f"must not already exist in {other}"
        errors.append(invalid_value(f"{path}.name", name, why))
    if where in taken.values():
        why = f"must not already exist as a path in {other}"
        errors.append(invalid_value(f"{path}.{key}", where, why))


def _validate_propagation(mode: str, container: Obj, path: str, errors: Errors) -> None:
    field = f"{path}.mountPropagation"
    if mode not in _PROPAGATIONS:
        errors.append(not_supported(field, mode, _PROPAGATIONS))
    elif mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        why = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(field_forbidden(field, why))


def _validate_recursive(mount: Obj, path: str, errors: Errors) -> None:
    mode = mount["recursiveReadOnly"]
    if mode not in _RECURSIVE:
        errors.append(not_supported(path, mode, _RECURSIVE))
    elif mode != "Disabled":
        if not mount.get("readOnly"):
            why = "may only be specified when readOnly is true"
            errors.append(field_forbidden(path, why))
        propagation = mount.get("mountPropagation")
        if propagation is not None and propagation != "None":
            why = "may only be specified when mountPropagation is None or not specified"
            errors.append(field_forbidden(path, why))


def _validate_devices(
    devices: list[Obj],
    mounted: dict[str, str],
    volumes: dict[str, Obj],
    path: str,
    errors: Errors,
) -> None:
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for index, device in enumerate(devices):
        here = f"{path}[{index}]"
        name, device_path = device.get("name") or "", device.get("devicePath") or ""
        if not name:
            errors.append(required_value(f"{here}.name"))
        if name in seen_names:
            errors.append(invalid_value(f"{here}.name", name, "must be unique"))
        volume = volumes.get(name)
        if volume is None:
            errors.append(field_not_found(f"{here}.name", name))
        elif not (volume.get("persistentVolumeClaim") or volume.get("ephemeral")):
            why = (
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block"
                " mode"
            )
            errors.append(invalid_value(f"{here}.name", name, why))
        _validate_device_path(device_path, seen_paths, f"{here}.devicePath", errors)
        _validate_overlap(device, mounted, "devicePath", here, errors)
        if name:
            seen_names.add(name)


def _validate_device_path(device: str, seen: set[str], path: str, errors: Errors) -> None:
    if not device:
        errors.append(required_value(path))
    if device in seen:
        errors.append(invalid_value(path, device, "must be unique"))
    if has_backsteps(device):
        errors.append(invalid_value(path, device, "can not contain backsteps ('..')"))
    else:
        seen.add(device)
