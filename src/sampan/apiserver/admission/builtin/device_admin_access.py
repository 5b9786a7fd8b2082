"""DRA admin access: only in namespaces that are labelled for it.

Job: refuse adminAccess in claims and templates of other namespaces, as upstream's strategies do.
"""

from collections.abc import Iterator

from sampan.api.errors import FieldError, field_forbidden, invalid
from sampan.api.objects import Obj, labels_of, name_of
from sampan.api.resources import NAMESPACES
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

LABEL = "resource.kubernetes.io/admin-access"
WHY = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"


def plugin(initializer: PluginInitializer) -> Steps:
    find = initializer.registry.find

    def validate(attributes: Attributes) -> None:
        obj = attributes.obj
        if obj is None:
            return
        asked = next(_asks_for_admin_access(obj), None)
        if asked is None:
            return
        namespace = find(NAMESPACES, "", attributes.namespace)
        if namespace is None or labels_of(namespace).get(LABEL) != "true":
            errors: list[FieldError] = [field_forbidden(asked, WHY)]
            raise invalid(str(obj.get("kind")), "resource.k8s.io", name_of(obj), errors)

    return Steps(validate=validate)


def _asks_for_admin_access(obj: Obj) -> Iterator[str]:
    """The paths of the requests that ask for it, as upstream writes them: of a claim and of a
    template of claims alike."""
    spec = obj.get("spec") or {}
    if obj.get("kind") == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    for number, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            yield f"spec.devices.requests[{number}].adminAccess"
