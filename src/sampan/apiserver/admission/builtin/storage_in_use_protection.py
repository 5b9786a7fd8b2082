"""StorageObjectInUseProtection: finalizers of PersistentVolumes and claims.

Job: put the protecting finalizer on every new claim and volume.
"""

from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

PROTECTED = {
    "PersistentVolume": "kubernetes.io/pv-protection",
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
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
