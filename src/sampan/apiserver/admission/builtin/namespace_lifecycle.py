"""NamespaceLifecycle: refuses creates in a namespace that is missing or terminating.

Job: 404 for a missing namespace, 403 for a terminating one and for deleting the system's own.
"""

from sampan.api.errors import forbidden, not_found
from sampan.api.objects import Obj, meta_of
from sampan.api.resources import NAMESPACES
from sampan.apiserver.admission.chain import CREATE, DELETE, Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


def plugin(initializer: PluginInitializer) -> Steps:
    find = initializer.registry.find

    def admit(attributes: Attributes) -> None:
        if attributes.operation == DELETE:
            _check_immortal(attributes)
        elif attributes.namespace and attributes.resource.group != "authorization.k8s.io":
            _check_alive(attributes, find(NAMESPACES, "", attributes.namespace))

    return Steps(admit)


def _check_immortal(attributes: Attributes) -> None:
    if attributes.is_main(NAMESPACES) and attributes.name in IMMORTAL:
        raise forbidden("namespaces", "", attributes.name, "this namespace may not be deleted")


def _check_alive(attributes: Attributes, namespace: Obj | None) -> None:
    name = attributes.namespace
    if namespace is None:
        raise not_found("namespaces", "", name)
    if attributes.operation != CREATE or attributes.subresource:
        return
    phase = (namespace.get("status") or {}).get("phase")
    if phase != "Terminating" and not meta_of(namespace).get("deletionTimestamp"):
        return
    resource = attributes.resource
    error = forbidden(
        resource.plural,
        resource.group,
        attributes.called,
        f"unable to create new content in namespace {name} because it is being terminated",
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {name} is being terminated",
        "field": "metadata.namespace",
    }
    error.details["causes"] = [cause]
    raise error
