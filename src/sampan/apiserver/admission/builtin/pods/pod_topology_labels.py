"""PodTopologyLabels: a pod that is bound gets its node's zone and region.

Job: copy the topology labels of the node into the binding, or into a pod that is made with a node.
"""

from sampan.api.objects import Obj, labels_of
from sampan.api.resources import BINDINGS, NODES, PODS
from sampan.apiserver.admission.chain import CREATE, UPDATE, Attributes, Steps
from sampan.apiserver.admission.parts import PluginParts

_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def plugin(parts: PluginParts) -> Steps:
    find = parts.registry.find

    def admit(attributes: Attributes) -> None:
        obj = attributes.obj
        if obj is None or attributes.resource not in (PODS, BINDINGS):
            return
        bound = attributes.subresource == "binding" and attributes.operation == UPDATE
        if not bound and not (attributes.operation == CREATE and attributes.is_main(PODS)):
            return
        node_name = (obj.get("spec") or {}).get("nodeName")
        node = find(NODES, "", node_name) if node_name else None
        if node is not None:
            _copy(obj, node)

    return Steps(admit)


def _copy(pod: Obj, node: Obj) -> None:
    found = {key: labels_of(node)[key] for key in _LABELS if key in labels_of(node)}
    if found:
        pod["metadata"] = {**pod["metadata"], "labels": {**labels_of(pod), **found}}
