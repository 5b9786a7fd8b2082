"""Persistent volumes: one source, a size, access modes, where it can be used.

Job: what must hold of a PersistentVolume.
Invariant: the source never changes.
"""

from collections.abc import Callable

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.difference import difference
from sampan.api.validation.fields import (
    validate_immutable,
    validate_no_backsteps,
    validate_optional_choice,
    validate_required,
    validate_with,
)
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.pod_spec import disks
from sampan.api.validation.pod_spec.resources import amount_of
from sampan.api.validation.pod_spec.volumes import SOURCES as POD_SOURCES
from sampan.api.validation.pod_spec.volumes import one_too_many, validate_csi_driver
from sampan.api.validation.rules import Rules
from sampan.api.validation.selectors import validate_node_selector

Errors = list[FieldError]
_OTHER_MODE = "may not specify volumeMode other than"
Check = Callable[[Obj, str, Errors], None]
# That for staging is taken as it is, as upstream.
_CSI_SECRETS = (
    "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef",
    "nodeExpandSecretRef",
)  # fmt: skip
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
SOURCES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd",
    "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip


def validate_persistent_volume(volume: Obj, errors: Errors) -> None:
    spec = spec_of(volume)
    if not spec.get("accessModes"):
        errors.append(required_value("spec.accessModes"))
    validate_access_modes(spec, "spec", errors)
    _validate_capacity(spec, errors)
    policies = ("Delete", "Recycle", "Retain")
    path = "spec.persistentVolumeReclaimPolicy"
    validate_optional_choice(spec.get("persistentVolumeReclaimPolicy"), policies, path, errors)
    _validate_source(spec, "spec", errors)
    place, affinity = spec.get("nodeAffinity"), (spec.get("nodeAffinity") or {}).get("required")
    if affinity is not None:
        validate_node_selector(affinity, "spec.nodeAffinity.required", errors)
    elif place is not None:
        why = "must specify required node constraints"
        errors.append(required_value("spec.nodeAffinity.required", why))
    elif next((key for key in SOURCES if spec.get(key) is not None), "") == "local":
        errors.append(required_value("spec.nodeAffinity", "Local volume requires node affinity"))
    at_root = (spec.get("hostPath") or {}).get("path") == "/"
    if at_root and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        errors.append(field_forbidden(path, "may not be 'recycle' for a hostPath mount of '/'"))
    if spec.get("storageClassName"):
        name = spec["storageClassName"]
        validate_with(names.dns_subdomain, name, "spec.storageClassName", errors)
    modes = ("Block", "Filesystem")
    validate_optional_choice(spec.get("volumeMode"), modes, "spec.volumeMode", errors)
    if spec.get("volumeAttributesClassName") is not None:
        _validate_attributes_class(spec, errors)


def validate_inline_volume(spec: Obj, path: str, errors: Errors) -> None:
    """Of an attachment: what belongs to a volume of its own must not be there."""
    inline = "in the context of inline volumes"
    for key in ("claimRef", "capacity", "nodeAffinity", "storageClassName"):
        if spec.get(key) is not None and (spec[key] or key in ("claimRef", "nodeAffinity")):
            errors.append(field_forbidden(f"{path}.{key}", f"may not be specified {inline}"))
    if spec.get("csi") is None:
        errors.append(required_value(f"{path}.csi", f"has to be specified {inline}"))
    if not spec.get("accessModes"):
        errors.append(required_value(f"{path}.accessModes"))
    validate_access_modes(spec, path, errors)
    for key, only in (("persistentVolumeReclaimPolicy", "Retain"), ("volumeMode", "Filesystem")):
        if spec.get(key, only) != only:
            said = f"may only be {only}" if only == "Retain" else f"{_OTHER_MODE} {only}"
            errors.append(field_forbidden(f"{path}.{key}", f"{said} {inline}"))
    _validate_source(spec, path, errors)


def _validate_attributes_class(spec: Obj, errors: Errors) -> None:
    name, path = spec["volumeAttributesClassName"], "spec.volumeAttributesClassName"
    if name:
        validate_with(names.dns_subdomain, name, path, errors)
    else:
        errors.append(required_value(path, "an empty string is disallowed"))
    if spec.get("csi") is None:
        why = "has to be specified when using volumeAttributesClassName"
        errors.append(required_value("spec.csi", why))


def validate_persistent_volume_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_persistent_volume(new, errors)
    spec, was = spec_of(new), spec_of(old)
    now_source = {key: spec[key] for key in SOURCES if spec.get(key) is not None}
    old_source = {key: was[key] for key in SOURCES if was.get(key) is not None}
    if now_source != old_source:
        changes = difference("core.PersistentVolumeSource", old_source, now_source)
        why = f"spec.persistentvolumesource is immutable after creation\n{changes}"
        errors.append(field_forbidden("spec.persistentvolumesource", why))
    mode, had = spec.get("volumeMode"), was.get("volumeMode")
    validate_immutable(mode, had, "volumeMode", errors)
    if was.get("nodeAffinity") and spec.get("nodeAffinity") != was["nodeAffinity"]:
        why = "field is immutable, except for updating from beta label to GA"
        shown = internal_form("VolumeNodeAffinity", spec.get("nodeAffinity"))
        errors.append(invalid_value("nodeAffinity", shown, why))


def validate_access_modes(spec: Obj, path: str, errors: Errors) -> None:
    modes = spec.get("accessModes") or []
    for mode in modes:
        if mode not in ACCESS_MODES:
            errors.append(not_supported(f"{path}.accessModes", mode, ACCESS_MODES))
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        errors.append(field_forbidden(f"{path}.accessModes", why))


def validate_size(written: str, path: str, errors: Errors) -> None:
    amount = amount_of(written)
    if amount is not None and amount.nanos <= 0:
        errors.append(invalid_value(path, str(amount), "must be greater than zero"))


def _validate_capacity(spec: Obj, errors: Errors) -> None:
    capacity = spec.get("capacity") or {}
    if not capacity:
        errors.append(required_value("spec.capacity"))
    if set(capacity) != {"storage"}:
        shown = spec.get("capacity") and dict(sorted(capacity.items()))
        errors.append(not_supported("spec.capacity", shown, ("storage",)))
    for name, written in capacity.items():
        validate_size(written, f"spec.capacity[{name}]", errors)


def _validate_source(spec: Obj, path: str, errors: Errors) -> None:
    given = [key for key in SOURCES if spec.get(key) is not None]
    if not given:
        errors.append(required_value(path, "must specify a volume type"))
        return
    first = "persistentDisk" if given[0] == "gcePersistentDisk" else given[0]
    _CHECKS[given[0]](spec[given[0]], f"{path}.{first}", errors)
    for key in given[1:]:
        if key == "flexVolume":  # which upstream does not count
            _CHECKS[key](spec[key], f"{path}.{key}", errors)
        else:
            errors.append(one_too_many(path, key))


def _local(source: Obj, path: str, errors: Errors) -> None:
    target = source.get("path") or ""
    if not target:
        errors.append(required_value(f"{path}.path"))
        return
    validate_no_backsteps(target, f"{path}.path", errors)


def _csi(source: Obj, path: str, errors: Errors) -> None:
    validate_csi_driver(source.get("driver") or "", f"{path}.driver", errors)
    validate_required(source.get("volumeHandle"), f"{path}.volumeHandle", errors)
    for key in _CSI_SECRETS:
        secret = source.get(key)
        if secret is not None:
            for part, rule in (("name", names.dns_subdomain), ("namespace", names.dns_label)):
                here, value = f"{path}.{key}.{part}", secret.get(part) or ""
                if value:
                    validate_with(rule, value, here, errors)
                else:
                    errors.append(required_value(here))


def _with_whole_secret(check: Check) -> Check:
    """Of another namespace than that of a pod, and therefore told."""

    def checked(source: Obj, path: str, errors: Errors) -> None:
        check(source, path, errors)
        secret = source.get("secretRef")
        if secret is not None:
            validate_required(secret.get("namespace"), f"{path}.secretRef.namespace", errors)

    return checked


def _iscsi(source: Obj, path: str, errors: Errors) -> None:
    disks.iscsi(source, path, errors, starts="must be valid format")
    disks.validate_named_secret(source, path, errors)


def _glusterfs(source: Obj, path: str, errors: Errors) -> None:
    POD_SOURCES["glusterfs"](source, path, errors)
    space, here = source.get("endpointsNamespace"), f"{path}.endpointsNamespace"
    if space == "":
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        errors.append(invalid_value(here, space, why))
    elif space is not None:
        validate_with(names.dns_label, space, here, errors)


def _azure_file(source: Obj, path: str, errors: Errors) -> None:
    POD_SOURCES["azureFile"](source, path, errors)
    if source.get("secretNamespace") == "":
        errors.append(required_value(f"{path}.secretNamespace"))


_CHECKS: dict[str, Check] = {
    **{kind: check for kind, check in POD_SOURCES.items() if kind in SOURCES},
    "local": _local,
    "iscsi": _iscsi,
    "glusterfs": _glusterfs,
    "azureFile": _azure_file,
    "cinder": _with_whole_secret(disks.cinder),
    "storageos": _with_whole_secret(disks.storage_os),
    "csi": _csi,
}

RULES = Rules(names.dns_subdomain, validate_persistent_volume, validate_persistent_volume_update)
