"""Table rows of volumes, claims, storage classes and CSI objects.

Job: cells of the storage and resource-claim kinds. Pure.
"""

from typing import Any

from sampan.api.objects import Obj, annotations_of, is_deleted, name_of, spec_of, status_of
from sampan.apiserver.printers.layout import (
    AGE,
    NAME,
    NAMED,
    NONE,
    UNSET,
    Column,
    Printer,
    age,
    boolean,
    columns,
    integer,
    just_name_and_age,
    since,
    wide,
)

_MODES = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}  # fmt: skip
_MIGRATION_STATES = frozenset({"Failed", "Running", "Succeeded"})
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _modes(modes: list[str] | None) -> str:
    """In the order of the table, each once."""
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _class_of(obj: Obj) -> str:
    return annotations_of(obj).get(_CLASS_ANNOTATION) or spec_of(obj).get("storageClassName") or ""


def _phase(obj: Obj) -> str:
    return "Terminating" if is_deleted(obj) else status_of(obj).get("phase") or ""


def _storage(amounts: Obj | None) -> str:
    return (amounts or {}).get("storage") or "0"


def _volume(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    claim = spec.get("claimRef")
    return [
        name_of(obj), _storage(spec.get("capacity")), _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "", _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class_of(obj), spec.get("volumeAttributesClassName") or UNSET,
        status_of(obj).get("reason") or "", age(obj, now), spec.get("volumeMode") or UNSET,
    ]  # fmt: skip


def _claim(obj: Obj, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    volume = spec.get("volumeName") or ""
    return [
        name_of(obj), _phase(obj), volume, _storage(status.get("capacity")) if volume else "",
        _modes(status.get("accessModes")) if volume else "", _class_of(obj),
        spec.get("volumeAttributesClassName") or UNSET, age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]  # fmt: skip


def _storage_class(obj: Obj, now: float) -> list[Any]:
    annotations = annotations_of(obj)
    default = any(annotations.get(key) == "true" for key in _DEFAULT_ANNOTATIONS)
    return [
        name_of(obj) + (" (default)" if default else ""), obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete", obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")), age(obj, now),
    ]  # fmt: skip


def _attributes_class(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), obj.get("driverName") or "", age(obj, now)]


def _attachment(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    attached = bool(status_of(obj).get("attached"))
    placed = [spec.get("attacher") or "", volume, spec.get("nodeName") or "", attached]
    return [name_of(obj), *placed, age(obj, now)]


def _csi_node(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), len(spec_of(obj).get("drivers") or ()), age(obj, now)]


def _csi_driver(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    attach, tokens = spec.get("attachRequired"), spec.get("tokenRequests")
    audiences = ",".join(token.get("audience") or "" for token in tokens or ())
    return [
        name_of(obj), True if attach is None else attach, bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")), UNSET if tokens is None else audiences,
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE, age(obj, now),
    ]  # fmt: skip


def _resource_claim(obj: Obj, now: float) -> list[Any]:
    status = status_of(obj)
    states = ["deleted"] if is_deleted(obj) else []
    if status.get("allocation") is not None:
        states += ["allocated"] + (["reserved"] if status.get("reservedFor") else [])
    elif not is_deleted(obj):
        states.append("pending")
    return [name_of(obj), ",".join(states), age(obj, now)]


def _resource_slice(obj: Obj, now: float) -> list[Any]:
    spec = spec_of(obj)
    pool = (spec.get("pool") or {}).get("name") or ""
    return [name_of(obj), spec.get("nodeName") or "", spec.get("driver") or "", pool, age(obj, now)]


def _device_taint_rule(obj: Obj, now: float) -> list[Any]:
    taint = spec_of(obj).get("taint") or {}
    added = taint.get("timeAdded")
    return [
        name_of(obj), taint.get("key") or "", taint.get("value") or "", taint.get("effect") or "",
        since(added, now) if added else "", age(obj, now),
    ]  # fmt: skip


def _migration(obj: Obj, now: float) -> list[Any]:
    resource = spec_of(obj).get("resource") or {}
    named = ".".join(filter(None, (resource.get("resource"), resource.get("group"))))
    true = [kind for kind in map(_true_type, status_of(obj).get("conditions") or ()) if kind]
    return [name_of(obj), named, true[-1] if true else "Unknown"]


def _true_type(condition: Obj) -> str:
    kind: str = condition.get("type") or ""
    is_shown = condition.get("status") == "True" and kind in _MIGRATION_STATES
    return kind if is_shown else ""


VOLUMES = Printer(
    (*columns(NAME, "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim",
              "StorageClass", "VolumeAttributesClass", "Reason", AGE), *wide("VolumeMode")),
    _volume,
)  # fmt: skip
CLAIMS = Printer(
    (*columns(NAME, "Status", "Volume", "Capacity", "Access Modes", "StorageClass",
              "VolumeAttributesClass", AGE), *wide("VolumeMode")),
    _claim,
)  # fmt: skip
STORAGE_CLASSES = Printer(
    columns(NAME, "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", AGE),
    _storage_class,
)
ATTRIBUTES_CLASSES = Printer(columns(NAME, "DriverName", AGE), _attributes_class)
ATTACHMENTS = Printer(
    columns(NAME, Column("Attacher", format="name"), "PV", "Node", boolean("Attached"), AGE),
    _attachment,
)
CSI_NODES = Printer((NAME, integer("Drivers"), AGE), _csi_node)
CSI_DRIVERS = Printer(
    columns(NAME, boolean("AttachRequired"), boolean("PodInfoOnMount"), boolean("StorageCapacity"),
            "TokenRequests", boolean("RequiresRepublish"), "Modes", AGE),
    _csi_driver,
)  # fmt: skip
RESOURCE_CLAIMS = Printer(columns(NAME, "State", AGE), _resource_claim)
RESOURCE_SLICES = Printer(columns(NAME, "Node", "Driver", "Pool", AGE), _resource_slice)
DEVICE_TAINT_RULES = Printer(
    columns(NAME, "Key", "Value", "Effect", "TimeAdded", AGE), _device_taint_rule
)
# As upstream: the name is text like any other.
MIGRATIONS = Printer(columns(Column("Name", description=NAMED), "Resource", "Status"), _migration)
JUST_AGE = Printer((NAME, AGE), just_name_and_age)  # device classes, claim templates
