"""PersistentVolumeClaimResize: a claim grows only where its StorageClass allows expansion.

Job: refuse more storage for a claim that is not bound, or whose class cannot be expanded.
"""

from sampan.api import quantity
from sampan.api.errors import forbidden
from sampan.api.objects import Obj, name_of
from sampan.api.resources import STORAGE_CLASSES
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    find = initializer.registry.find

    def validate(attributes: Attributes) -> None:
        new, old = attributes.obj, attributes.old
        if new is None or old is None:
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

    return Steps(validate=validate)


def _size(claim: Obj) -> quantity.Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return quantity.parse(str(requests.get("storage", "0")))
