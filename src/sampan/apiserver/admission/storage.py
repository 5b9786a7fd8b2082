"""Storage: default classes, protection from deletion while in use, and growing claims.

Job: DefaultStorageClass, StorageObjectInUseProtection, PersistentVolumeClaimResize.
"""

from sampan.api import quantity
from sampan.api.errors import forbidden
from sampan.api.objects import Obj, annotations_of, meta_of, name_of
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from sampan.apiserver.admission.chain import (
    CREATE,
    UPDATE,
    Attributes,
    Find,
    FindAll,
    Plugin,
)

_DEFAULT = ("storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class")  # fmt: skip
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
PROTECTED = {
    "PersistentVolume": "kubernetes.io/pv-protection",
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
}


def default_class(classes: list[Obj]) -> Obj | None:
    """Of several the newest; of the same second, the first by name."""
    defaults = [one for one in classes if any(annotations_of(one).get(key) == "true"
                                              for key in _DEFAULT)]  # fmt: skip
    defaults.sort(key=name_of)
    created = lambda one: str(meta_of(one).get("creationTimestamp") or "")  # noqa: E731
    return max(defaults, key=created, default=None)


def default_storage_class(find_all: FindAll) -> Plugin:
    def admit(attributes: Attributes) -> None:
        claim = attributes.obj
        if claim is None or not attributes.is_main(PERSISTENT_VOLUME_CLAIMS):
            return
        spec = claim.setdefault("spec", {})
        if spec.get("storageClassName") is not None or _BETA_CLASS in annotations_of(claim):
            return
        found = default_class(find_all(STORAGE_CLASSES))
        if found is not None:
            spec["storageClassName"] = name_of(found)

    return Plugin("DefaultStorageClass", frozenset({CREATE}), mutate=admit)


def _protect(attributes: Attributes) -> None:
    obj = attributes.obj
    for resource in (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES):
        if obj is not None and attributes.is_main(resource):
            finalizers = obj["metadata"].get("finalizers") or []
            wanted = PROTECTED[resource.kind]
            if wanted not in finalizers:
                obj["metadata"]["finalizers"] = [*finalizers, wanted]


IN_USE_PROTECTION = Plugin("StorageObjectInUseProtection", frozenset({CREATE}), mutate=_protect)


def claim_resize(find: Find) -> Plugin:
    def validate(attributes: Attributes) -> None:
        new, old = attributes.obj, attributes.old
        if new is None or old is None or not attributes.is_main(PERSISTENT_VOLUME_CLAIMS):
            return
        if not _size(old) < _size(new):
            return
        why = ""
        if (old.get("status") or {}).get("phase") != "Bound":
            why = "Only bound persistent volume claims can be expanded"
        else:
            name = (old.get("spec") or {}).get("storageClassName")
            found = find(STORAGE_CLASSES, "", name) if name else None
            if found is None or not found.get("allowVolumeExpansion"):
                why = (
                    "only dynamically provisioned pvc can be resized and the storageclass that "
                    "provisions the pvc must support resize"
                )
        if why:
            raise forbidden("persistentvolumeclaims", "", name_of(new), why)

    return Plugin("PersistentVolumeClaimResize", frozenset({UPDATE}), validate=validate)


def _size(claim: Obj) -> quantity.Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return quantity.parse(str(requests.get("storage", "0")))
