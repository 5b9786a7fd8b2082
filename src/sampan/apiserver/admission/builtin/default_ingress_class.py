"""DefaultIngressClass: an Ingress without a class gets the default one."""

from sampan.api.objects import annotations_of, meta_of, name_of
from sampan.api.resources import by_kind
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
_OLD = "kubernetes.io/ingress.class"


def plugin(initializer: PluginInitializer) -> Steps:
    classes = by_kind("networking.k8s.io/v1", "IngressClass")
    assert classes is not None

    def admit(attributes: Attributes) -> None:
        ingress = attributes.obj
        if ingress is None:
            return
        spec = ingress.setdefault("spec", {})
        if spec.get("ingressClassName") is not None or annotations_of(ingress).get(_OLD):
            return
        defaults = [item for item in initializer.registry.find_all(classes)
                    if annotations_of(item).get(_DEFAULT) == "true"]  # fmt: skip
        if not defaults:
            return
        # As upstream: the newest, and by name where two are of the same second.
        defaults.sort(key=name_of)
        defaults.sort(key=lambda item: str(meta_of(item).get("creationTimestamp")), reverse=True)
        spec["ingressClassName"] = name_of(defaults[0])

    return Steps(admit)
