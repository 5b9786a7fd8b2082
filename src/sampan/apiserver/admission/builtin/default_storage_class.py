"""DefaultStorageClass: a PersistentVolumeClaim without a class gets the default one.

Job: fill in spec.storageClassName.
"""

from sampan.api.objects import Obj, annotations_of, meta_of, name_of
from sampan.api.resources import STORAGE_CLASSES
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

_DEFAULT = ("storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class")  # fmt: skip
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def plugin(initializer: PluginInitializer) -> Steps:
    find_all = initializer.registry.find_all

    def mutate(attributes: Attributes) -> None:
        claim = attributes.obj
        if claim is None:
            return
        spec = claim.setdefault("spec", {})
        if spec.get("storageClassName") is not None or _BETA_CLASS in annotations_of(claim):
            return
        found = default_class(find_all(STORAGE_CLASSES))
        if found is not None:
            spec["storageClassName"] = name_of(found)

    return Steps(mutate)


def default_class(classes: list[Obj]) -> Obj | None:
    """Of several the newest; of the same second, the first by name."""
    defaults = [class_ for class_ in classes if any(annotations_of(class_).get(key) == "true"
                                              for key in _DEFAULT)]  # fmt: skip
    defaults.sort(key=name_of)
    created = lambda item: str(meta_of(item).get("creationTimestamp") or "")  # noqa: E731  # used twice below
    return max(defaults, key=created, default=None)
