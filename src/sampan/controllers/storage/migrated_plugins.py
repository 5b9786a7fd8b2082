"""What claims and volumes of in-tree plugins bear now that CSI drivers stand for these. Pure.

Job: as upstream's persistentvolume-binder: the annotation that hands an object to a driver, and the
    finalizers of who deletes it.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, annotations_of, meta_of
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.api.rules.storage import (
    BETA_PROVISIONER,
    MIGRATED_TO,
    PROVISIONED_BY,
    PROVISIONER,
)
from sampan.api.rules.volumes.in_tree_volumes import driver_instead_of
from sampan.controllers.actions import Patch, merge_patch

IN_TREE_FINALIZER = "kubernetes.io/pv-controller"
EXTERNAL_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
_PREFIX = "kubernetes.io/"
HOST_PATH, NFS = "kubernetes.io/host-path", "kubernetes.io/nfs"


def claim_patch(claim: Obj) -> Patch | None:
    """None: nothing has to change."""
    notes = annotations_of(claim)
    marks = _marks(claim, notes.get(PROVISIONER, notes.get(BETA_PROVISIONER)))
    if not marks:
        return None
    return merge_patch(PERSISTENT_VOLUME_CLAIMS, claim, {"metadata": {"annotations": marks}})


def volume_patch(volume: Obj) -> Patch | None:
    """None: nothing has to change."""
    provisioner = annotations_of(volume).get(PROVISIONED_BY)
    if provisioner is None:
        return None
    meta: Obj = {}
    if marks := _marks(volume, provisioner):
        meta["annotations"] = marks
    had = tuple(meta_of(volume).get("finalizers") or ())
    policy = volume["spec"].get("persistentVolumeReclaimPolicy")
    finalizers = _finalizers(had, provisioner, policy)
    if finalizers != had:
        meta["finalizers"] = list(finalizers)
    return merge_patch(PERSISTENT_VOLUMES, volume, {"metadata": meta}) if meta else None


def _marks(obj: Obj, provisioner: str | None) -> Obj:
    if provisioner is None:
        return {}
    driver, marked = driver_instead_of(provisioner), annotations_of(obj).get(MIGRATED_TO)
    if driver:
        return {MIGRATED_TO: driver} if marked != driver else {}
    return {MIGRATED_TO: None} if marked else {}


def _finalizers(had: Sequence[str], provisioner: str, policy: str | None) -> tuple[str, ...]:
    """A driver has its own; what this controller was to delete keeps only this controller's."""
    if driver_instead_of(provisioner):
        return tuple(item for item in had if item != IN_TREE_FINALIZER)
    if not provisioner.startswith(_PREFIX):
        return tuple(had)
    kept = tuple(item for item in had if item != EXTERNAL_FINALIZER)
    if policy == "Delete":
        return kept if IN_TREE_FINALIZER in kept else (*kept, IN_TREE_FINALIZER)
    return tuple(item for item in kept if item != IN_TREE_FINALIZER)


def why_not_provisioned(provisioner: str) -> str:
    """Of a class of Kubernetes' own; empty: some driver or program provisions for it."""
    if not provisioner.startswith(_PREFIX) or driver_instead_of(provisioner):
        return ""
    if provisioner == HOST_PATH:
        why = f'provisioning in volume plugin "{HOST_PATH}" is disabled'
        return f"Failed to create provisioner: {why}"
    if provisioner == NFS:
        return "no provisionable volume plugin matched"
    return f"no volume plugin matched name: {provisioner}"
