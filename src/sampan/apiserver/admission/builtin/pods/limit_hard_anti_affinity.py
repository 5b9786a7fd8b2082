"""LimitPodHardAntiAffinityTopology: required anti-affinity by hostname only.

Job: refuse required anti-affinity over any topology but the node.
"""

from sampan.apiserver.admission.chain import Attributes, Steps, rejection
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

_HOSTNAME = "kubernetes.io/hostname"


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(validate=_validate)


def _validate(attributes: Attributes) -> None:
    affinity = ((attributes.obj or {}).get("spec") or {}).get("affinity") or {}
    terms = (affinity.get("podAntiAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for term in terms or ():
        if term.get("topologyKey") != _HOSTNAME:
            raise rejection(
                attributes,
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey "
                f"{term.get('topologyKey')} but only key {_HOSTNAME} is allowed",
            )
