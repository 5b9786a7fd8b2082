"""Objects that make csi.sampan.dev usable: CSIDriver, StorageClasses, VolumeSnapshotClass.

Job: what of the driver's settings the API must know; write what is not there yet.
Invariant: an object that somebody changed stays as it is.
"""

from sampan.api.errors import AlreadyExists
from sampan.api.objects import Obj
from sampan.api.resources import CSI_DRIVERS, STORAGE_CLASSES, Resource
from sampan.client.contract import Client
from sampan.drivers.csi.settings import DIRECTORY, KIND, LOOP, DriverSettings
from sampan.drivers.sidecars.snapshot_kinds import CLASSES

_FOUND_BY = {"app.kubernetes.io/managed-by": "sampan"}


def installed_objects(settings: DriverSettings) -> list[tuple[Resource, Obj]]:
    short = settings.name.partition(".")[0]
    return [
        (CSI_DRIVERS, csi_driver(settings)),
        (STORAGE_CLASSES, _storage_class(settings, short, DIRECTORY)),
        (STORAGE_CLASSES, _storage_class(settings, f"{short}-loop", LOOP)),
    ]


def csi_driver(settings: DriverSettings) -> Obj:
    return {
        "apiVersion": CSI_DRIVERS.api_version,
        "kind": CSI_DRIVERS.kind,
        "metadata": {"name": settings.name, "labels": dict(_FOUND_BY)},
        "spec": {
            "attachRequired": settings.attaches,
            "podInfoOnMount": True,
            "fsGroupPolicy": "File",
            "storageCapacity": True,
            "volumeLifecycleModes": ["Persistent", "Ephemeral"],
        },
    }


def _storage_class(settings: DriverSettings, name: str, kind: str) -> Obj:
    return {
        "apiVersion": STORAGE_CLASSES.api_version,
        "kind": STORAGE_CLASSES.kind,
        "metadata": {"name": name, "labels": dict(_FOUND_BY)},
        "provisioner": settings.name,
        "parameters": {KIND: kind},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


def snapshot_class(settings: DriverSettings) -> Obj:
    return {
        "apiVersion": CLASSES.api_version,
        "kind": CLASSES.kind,
        "metadata": {"name": settings.name.partition(".")[0], "labels": dict(_FOUND_BY)},
        "driver": settings.name,
        "deletionPolicy": "Delete",
    }


async def install(settings: DriverSettings, client: Client) -> None:
    """Raises ApiError."""
    for row, obj in installed_objects(settings):
        try:
            await client.create(row, obj)
        except AlreadyExists:
            continue
