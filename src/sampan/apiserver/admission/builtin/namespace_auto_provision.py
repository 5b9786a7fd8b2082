"""NamespaceAutoProvision: creates a missing namespace with the first object in it.

Job: make the namespace of a new object, if it is not there.
"""

from collections.abc import Awaitable

from sampan.api.resources import NAMESPACES
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    find, make = initializer.registry.find, initializer.make_namespace

    def mutate(attributes: Attributes) -> Awaitable[None] | None:
        name = attributes.namespace
        if attributes.dry_run or not name or find(NAMESPACES, "", name) is not None:
            return None
        return make(name)

    return Steps(mutate)
