"""NamespaceExists: refuses writes into a namespace that does not exist.

Job: 404 for a missing namespace. NamespaceLifecycle does the same and more.
"""

from sampan.api.errors import not_found
from sampan.api.resources import NAMESPACES
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    find = initializer.registry.find

    def validate(attributes: Attributes) -> None:
        if attributes.namespace and find(NAMESPACES, "", attributes.namespace) is None:
            raise not_found("namespaces", "", attributes.namespace)

    return Steps(validate=validate)
