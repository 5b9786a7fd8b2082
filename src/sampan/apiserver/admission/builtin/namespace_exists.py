"""NamespaceExists: nothing is written in a namespace that is not there.

Job: 404 for a missing namespace. NamespaceLifecycle does the same and more.
"""

from sampan.api.errors import not_found
from sampan.api.resources import NAMESPACES
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.parts import PluginParts


def plugin(parts: PluginParts) -> Steps:
    find = parts.registry.find

    def validate(attributes: Attributes) -> None:
        if attributes.namespace and find(NAMESPACES, "", attributes.namespace) is None:
            raise not_found("namespaces", "", attributes.namespace)

    return Steps(validate=validate)
