"""NodeDeclaredFeatureValidator: a pod that is bound is not changed in a way its node cannot follow.

Job: refuse a change of a pod's spec that needs a feature its node does not declare.
"""

from sampan.api.objects import spec_of, status_of
from sampan.api.resources import NODES
from sampan.api.rules.node_agent.declared_features import missing_to_change
from sampan.apiserver.admission.chain import Attributes, Steps, rejection
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    find = initializer.registry.find

    def validate(attributes: Attributes) -> None:
        new, old = attributes.obj, attributes.old
        name = spec_of(new).get("nodeName") if new is not None else ""
        if new is None or old is None or not name or attributes.subresource not in ("", "resize"):
            return
        if not missing_to_change(spec_of(old), spec_of(new), ()):
            return  # it needs nothing
        node = find(NODES, "", name)
        if node is None:
            raise rejection(attributes, f'node "{name}" not found')
        there = status_of(node).get("declaredFeatures") or ()
        lacking = missing_to_change(spec_of(old), spec_of(new), there)
        if lacking:
            why = f'pod update requires features {lacking} which are not available on node "{name}"'
            raise rejection(attributes, why)

    return Steps(validate=validate)
