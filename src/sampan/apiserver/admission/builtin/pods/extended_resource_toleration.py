"""ExtendedResourceToleration: pods tolerate the taints of the extended resources they request.

Job: add a toleration per extended resource that the pod asks for.
"""

from sampan.api.rules.nodes import is_extended_resource
from sampan.api.rules.pods import all_containers
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(_tolerate)


def _tolerate(attributes: Attributes) -> None:
    pod = attributes.obj
    if pod is None:
        return
    names = {
        name
        for container in all_containers(pod)
        for name in ((container.get("resources") or {}).get("requests") or {})
        if is_extended_resource(name)
    }
    spec = pod.setdefault("spec", {})
    for name in sorted(names):
        wanted = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
        if wanted not in (spec.get("tolerations") or ()):
            spec["tolerations"] = [*(spec.get("tolerations") or ()), wanted]
