"""Facts about storage: classes of claims and volumes, annotations, the local provisioner.

Job: read a claim's and a volume's class; name upstream's annotations, and those of the local
    provisioner and its nodes. Pure.
"""

import hashlib
from collections.abc import Iterable

from sampan.api.objects import Obj, annotations_of, meta_of, name_of

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"  # a CSI driver
# Of a CSINode: in-tree plugins for which CSI drivers stand there.
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
RESIZER = "volume.kubernetes.io/storage-resizer"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
CLASS_PROTECTION = "kubernetes.io/vac-protection"  # of VolumeAttributesClasses

# sampan's own: directories of a node as volumes.
LOCAL_PROVISIONER = "sampan.io/local"
LOCAL_ROOT = "sampan.io/local-volumes"  # annotation of a Node: where it keeps them
LOCAL_FINALIZER = "sampan.io/local-volume"  # the node has a directory to remove


def attachment_name(handle: str, driver: str, node_name: str) -> str:
    """Of the VolumeAttachment of a CSI driver's volume on a node."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node_name}'.encode()).hexdigest()}"


def unique_volume_name(driver: str, handle: str) -> str:
    """Of a CSI driver's volume, as a node's status lists it."""
    return f"kubernetes.io/csi/{driver}^{handle}"


def class_name_of(obj: Obj) -> str:
    """Of a claim or of a volume; empty where it has none."""
    return class_named(obj) or ""


def class_named(obj: Obj) -> str | None:
    """None where nobody said anything; an empty name says: none at all."""
    beta = annotations_of(obj).get(BETA_CLASS)
    if beta is not None:
        return beta
    named: str | None = (obj.get("spec") or {}).get("storageClassName")
    return named


def node_of_volume(volume: Obj) -> str:
    """The one node that a local volume is on; its hostname label is its name."""
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for expression in (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())):
            return str((expression.get("values") or [""])[0])
    return ""


def is_default_class(storage_class: Obj) -> bool:
    marks = annotations_of(storage_class)
    return "true" in (marks.get(DEFAULT_CLASS), marks.get(BETA_DEFAULT_CLASS))


def default_class(classes: Iterable[Obj]) -> Obj | None:
    """The newest of the default ones, the first by name among equals."""
    defaults = sorted((class_ for class_ in classes if is_default_class(class_)), key=name_of)
    return max(
        defaults,
        key=lambda default: str(meta_of(default).get("creationTimestamp") or ""),
        default=None,
    )


def waits_for_consumer(storage_class: Obj | None) -> bool:
    if storage_class is None:
        return False
    return storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
