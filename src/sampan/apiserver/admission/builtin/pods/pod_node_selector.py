"""PodNodeSelector: merges the node selector of the namespace into its pods.

Job: merge the namespace's selector, or the cluster's, into the pod's; refuse a conflict, and labels
    outside what the configuration allows the namespace.
"""

from sampan.api.objects import annotations_of
from sampan.api.resources import NAMESPACES
from sampan.apiserver.admission.chain import Attributes, Steps, rejection
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

_KEY = "scheduler.alpha.kubernetes.io/node-selector"


def plugin(initializer: PluginInitializer) -> Steps:
    find, settings = initializer.registry.find, initializer.settings.node_selectors

    def of_namespace(attributes: Attributes) -> dict[str, str]:
        notes = annotations_of(find(NAMESPACES, "", attributes.namespace) or {})
        return _pairs(notes.get(_KEY, settings.cluster_default))

    def mutate(attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        spec = attributes.obj.setdefault("spec", {})
        own, more = spec.get("nodeSelector") or {}, of_namespace(attributes)
        if any(own.get(name, value) != value for name, value in more.items()):
            why = "pod node label selector conflicts with its namespace node label selector"
            raise rejection(attributes, why)
        if more:
            spec["nodeSelector"] = {**more, **own}

    def validate(attributes: Attributes) -> None:
        allowed = _pairs(settings.allowed.get(attributes.namespace, ""))
        own = ((attributes.obj or {}).get("spec") or {}).get("nodeSelector") or {}
        if allowed and any(allowed.get(name) != value for name, value in own.items()):
            why = "pod node label selector labels conflict with its namespace whitelist"
            raise rejection(attributes, why)

    return Steps(mutate, validate)


def _pairs(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}
