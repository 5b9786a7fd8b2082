"""PodTopologyLabels: a pod that is bound gets its node's zone and region.

Job: copy the topology labels of the node into the binding, or into a pod that is made with a node.
"""

from sampan.api.objects import Obj, labels_of, meta_of
from sampan.api.resources import BINDINGS, NODES, PODS
from sampan.apiserver.admission.chain import CREATE, Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.registry.pods import TOPOLOGY


def plugin(initializer: PluginInitializer) -> Steps:
    find = initializer.registry.find

    def admit(attributes: Attributes) -> None:
        obj = attributes.obj
        if obj is None or attributes.operation != CREATE:
            return
        if attributes.subresource == "binding" or attributes.resource is BINDINGS:
            node_name = (obj.get("target") or {}).get("name")
        elif attributes.is_main(PODS):
            node_name = (obj.get("spec") or {}).get("nodeName")
        else:
            return
        node = find(NODES, "", node_name) if node_name else None
        if node is not None:
            _copy(obj, node)

    return Steps(admit)


def _copy(obj: Obj, node: Obj) -> None:
    labels = labels_of(node)
    found = {key: labels[key] for key in TOPOLOGY if key in labels}
    if found:
        obj["metadata"] = {**meta_of(obj), "labels": {**labels_of(obj), **found}}
