"""What a claim asks of a CSI driver, and the PersistentVolume that it becomes. Pure.

Job: as external-provisioner: which claims are the driver's, CreateVolume's words, the volume's
    object; topology of nodes; names of secrets.
"""

from collections.abc import Mapping, Sequence

from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from sampan.api.quantity import Format, from_value, value_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

PROVISIONER, OLD_PROVISIONER = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
DELETION_SECRET = "volume.kubernetes.io/provisioner-deletion-secret-{}"
PREFIX = "csi.storage.k8s.io/"
WAITS = "WaitForFirstConsumer"
# A claim's access mode → CSI's; of drivers that tell writers of one node apart, and of others.
MODES = {
    "ReadWriteOnce": ("SINGLE_NODE_MULTI_WRITER", "SINGLE_NODE_WRITER"),
    "ReadWriteOncePod": ("SINGLE_NODE_SINGLE_WRITER", "SINGLE_NODE_WRITER"),
    "ReadOnlyMany": ("MULTI_NODE_READER_ONLY",) * 2,
    "ReadWriteMany": ("MULTI_NODE_MULTI_WRITER",) * 2,
}
_SECRETS = {
    "provisioner-secret": "",
    "controller-publish-secret": "controllerPublishSecretRef",
    "node-stage-secret": "nodeStageSecretRef",
    "node-publish-secret": "nodePublishSecretRef",
    "controller-expand-secret": "controllerExpandSecretRef",
    "node-expand-secret": "nodeExpandSecretRef",
}
_BRACED = lazy_pattern(r"\$\{([^}]*)\}")

Segments = Mapping[str, str]


def wants_volume(claim: Obj, driver: str) -> bool:
    """Is it this driver's to make one for it?"""
    notes = annotations_of(claim)
    if is_deleted(claim) or spec_of(claim).get("volumeName"):
        return False
    return driver in (notes.get(PROVISIONER), notes.get(OLD_PROVISIONER))


def is_ready(claim: Obj, storage_class: Obj, node: str, lowest: str) -> bool:
    """`lowest`: of the nodes with this driver: one must see to claims that wait for nobody."""
    chosen = annotations_of(claim).get(SELECTED_NODE)
    if storage_class.get("volumeBindingMode") == WAITS or chosen:
        return chosen == node
    return node == lowest


def volume_name(claim: Obj) -> str:
    return f"pvc-{uid_of(claim)}"


def parameters_of(storage_class: Obj) -> dict[str, str]:
    """What the driver is told of them."""
    given: Mapping[str, str] = storage_class.get("parameters") or {}
    return {name: value for name, value in given.items() if not name.startswith(PREFIX)}


def fs_type_of(storage_class: Obj) -> str:
    return str((storage_class.get("parameters") or {}).get(f"{PREFIX}fstype") or "")


def secret_references(storage_class: Obj, claim: Obj) -> dict[str, tuple[str, str]]:
    """By their name in a StorageClass: namespace and name, with what stands for the claim's."""
    given = storage_class.get("parameters") or {}
    words = {
        "pv.name": volume_name(claim),
        "pvc.name": name_of(claim),
        "pvc.namespace": namespace_of(claim),
        **{f"pvc.annotations['{key}']": value for key, value in annotations_of(claim).items()},
    }
    found = {}
    for kind in _SECRETS:
        name, space = (given.get(f"{PREFIX}{kind}-{part}") for part in ("name", "namespace"))
        if name and space:
            found[kind] = (_filled(space, words), _filled(name, words))
    return found


def _filled(text: str, words: Mapping[str, str]) -> str:
    """What stands for nothing stays: no secret has such a name, and that is told."""
    return _BRACED.sub(lambda found: words.get(found[1], found[0]), text)


@dataclass(frozen=True, slots=True)
class Made:
    """What CreateVolume answered."""

    handle: str
    size_bytes: int
    attributes: Mapping[str, str]
    topologies: Sequence[Segments] = ()


def volume_object(claim: Obj, storage_class: Obj, driver: str, made: Made, identity: str) -> Obj:
    """The PersistentVolume, bound to its claim from the beginning."""
    secrets = secret_references(storage_class, claim)
    wanted = spec_of(claim)
    source: Obj = {
        "driver": driver,
        "volumeHandle": made.handle,
        "volumeAttributes": {
            **made.attributes, "storage.kubernetes.io/csiProvisionerIdentity": identity,
        },
        **{_SECRETS[kind]: {"namespace": space, "name": name}
           for kind, (space, name) in secrets.items() if _SECRETS[kind]},
    }  # fmt: skip
    if wanted.get("volumeMode") != "Block" and fs_type_of(storage_class):
        source["fsType"] = fs_type_of(storage_class)
    space, name = secrets.get("provisioner-secret", ("", ""))
    asked = value_of(wanted["resources"]["requests"]["storage"])
    size = from_value(made.size_bytes, Format.BINARY_SI) if made.size_bytes else asked
    spec: Obj = {
        "accessModes": wanted.get("accessModes") or [],
        "capacity": {"storage": str(size)},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": name_of(storage_class),
        "volumeMode": wanted.get("volumeMode") or "Filesystem",
        "mountOptions": list(storage_class.get("mountOptions") or []),
        "csi": source,
        "claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name_of(claim),
            "namespace": namespace_of(claim), "uid": uid_of(claim),
            "resourceVersion": (claim.get("metadata") or {}).get("resourceVersion") or "",
        },
    }  # fmt: skip
    if wanted.get("volumeAttributesClassName"):
        spec["volumeAttributesClassName"] = wanted["volumeAttributesClassName"]
    if made.topologies:
        spec["nodeAffinity"] = affinity_of(made.topologies)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name(claim),
            "annotations": {
                PROVISIONED_BY: driver,
                DELETION_SECRET.format("namespace"): space,
                DELETION_SECRET.format("name"): name,
            },
            "finalizers": [FINALIZER],
        },
        "spec": spec,
    }


def affinity_of(topologies: Sequence[Segments]) -> Obj:
    terms = [
        {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": [value]}
                for key, value in sorted(segments.items())
            ]
        }
        for segments in topologies
    ]
    return {"required": {"nodeSelectorTerms": terms}}


def segments_of(node: Obj, csi_node: Obj, driver: str) -> Segments:
    """Where a node is, in the driver's own keys."""
    labels: Mapping[str, str] = (node.get("metadata") or {}).get("labels") or {}
    for item in spec_of(csi_node).get("drivers") or ():
        if item.get("name") == driver:
            keys = item.get("topologyKeys") or ()
            return {key: labels[key] for key in keys if key in labels}
    return {}


def is_to_be_deleted(volume: Obj, driver: str) -> bool:
    """As external-provisioner, which heeds the policy of a volume that is deleted before its
    claim."""
    spec = spec_of(volume)
    if annotations_of(volume).get(PROVISIONED_BY) != driver:
        return False
    if spec.get("persistentVolumeReclaimPolicy") != "Delete":
        return False
    phase = (volume.get("status") or {}).get("phase")
    finalizers = (volume.get("metadata") or {}).get("finalizers") or ()
    if is_deleted(volume):
        return FINALIZER in finalizers and phase not in ("Bound", "Available", "Pending")
    return phase == "Released"


def is_given_up(volume: Obj, driver: str) -> bool:
    """It is deleted, and stays where it is: only our finalizer is in the way."""
    finalizers = (volume.get("metadata") or {}).get("finalizers") or ()
    ours = annotations_of(volume).get(PROVISIONED_BY) == driver and FINALIZER in finalizers
    kept = spec_of(volume).get("persistentVolumeReclaimPolicy") != "Delete"
    return ours and is_deleted(volume) and kept
