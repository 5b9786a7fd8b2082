"""StorageObjectInUseProtection: finalizers of PersistentVolumes, claims and attributes classes.

Job: put the protecting finalizer on every new one.
"""

from sampan.api.rules.storage import CLAIM_PROTECTION, CLASS_PROTECTION, VOLUME_PROTECTION
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

PROTECTED = {
    "PersistentVolume": VOLUME_PROTECTION,
    "PersistentVolumeClaim": CLAIM_PROTECTION,
    "VolumeAttributesClass": CLASS_PROTECTION,
}


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(_protect)


def _protect(attributes: Attributes) -> None:
    obj = attributes.obj
    if obj is None:
        return
    finalizers = obj["metadata"].get("finalizers") or []
    wanted = PROTECTED[attributes.resource.kind]
    if wanted not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, wanted]
