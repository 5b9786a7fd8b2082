"""Defaults of volume sources, in pods and in persistent volumes.

Job: fill in one volume, as upstream does.
Invariant: a volume that names no source is an emptyDir.
"""

from sampan.api.defaults.containers import (
    default_field_ref,
    default_resource_ref,
    pull_policy_of,
)
from sampan.api.objects import Obj

FILE_MODE = 0o644
_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


def default_volume(volume: Obj) -> None:
    if all(value is None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
        return
    for key in _WITH_MODE:
        source = volume.get(key)
        if source is not None and source.get("defaultMode") is None:
            source["defaultMode"] = FILE_MODE
    _default_items(volume.get("downwardAPI"))
    projected = volume.get("projected")
    if projected:
        for source in projected.get("sources") or ():
            _default_projection(source)
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = pull_policy_of(image.get("reference") or "")
    claim = volume.get("ephemeral")
    template = claim and claim.get("volumeClaimTemplate")
    if template:
        spec = template.setdefault("spec", {})
        if not spec.get("volumeMode"):
            spec["volumeMode"] = "Filesystem"
    default_volume_source(volume)


def default_volume_source(source: Obj) -> None:
    """The sources that a pod's volume and a persistent volume have in common."""
    host_path = source.get("hostPath")
    if host_path is not None and host_path.get("type") is None:
        host_path["type"] = ""
    for key, values in _NETWORK_DISKS.items():
        disk = source.get(key)
        if disk is not None:
            for field, value in values.items():
                if disk.get(field) in (None, ""):
                    disk[field] = value


_NETWORK_DISKS: dict[str, Obj] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "kind": "Shared",
        "fsType": "ext4",
        "readOnly": False,
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def _default_projection(source: Obj) -> None:
    token = source.get("serviceAccountToken")
    if token is not None and token.get("expirationSeconds") is None:
        token["expirationSeconds"] = 3600
    _default_items(source.get("downwardAPI"))


def _default_items(downward: Obj | None) -> None:
    for item in (downward or {}).get("items") or ():
        default_field_ref(item.get("fieldRef"))
        default_resource_ref(item.get("resourceFieldRef"))
