"""NamespaceAutoProvision: a namespace comes to be when something is made in it.

Job: make the namespace of a new object, if it is not there.
"""

from collections.abc import Awaitable

from sampan.api.resources import NAMESPACES
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.parts import PluginParts


def plugin(parts: PluginParts) -> Steps:
    find, make = parts.registry.find, parts.make_namespace

    def mutate(attributes: Attributes) -> Awaitable[None] | None:
        name = attributes.namespace
        if attributes.dry_run or not name or find(NAMESPACES, "", name) is not None:
            return None
        return make(name)

    return Steps(mutate)
