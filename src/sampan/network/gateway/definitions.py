"""The kinds of the Gateway API, where a CustomResourceDefinition defines them.

Job: follow the definitions; keep an informer of each kind while it is served.
Invariant: without definitions nothing is listed or watched but the definitions.
Owner: the Gateway controller.
"""

from collections.abc import Callable, Sequence

from sampan.api.objects import Obj, name_of
from sampan.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from sampan.api.rules.conditions import is_true
from sampan.client.informer import Informer, Informers, Listener
from sampan.network.gateway.references import GROUP

CLASSES, GATEWAYS, ROUTES, GRANTS = "gatewayclasses", "gateways", "httproutes", "referencegrants"
_KINDS = {
    CLASSES: "GatewayClass", GATEWAYS: "Gateway", ROUTES: "HTTPRoute", GRANTS: "ReferenceGrant",
}  # fmt: skip
_VERSIONS = ("v1", "v1beta1")  # of them the first that is served


class Definitions:
    def __init__(self, informers: Informers, changed: Listener, came: Callable[[], None]) -> None:
        """`changed`: of any object of these kinds; `came`: a kind came or went."""
        self._informers, self._changed, self._came = informers, changed, came
        self._kinds: dict[str, Informer] = {}
        self._definitions = informers.of(CUSTOM_RESOURCE_DEFINITIONS)

    def start(self) -> None:
        self._definitions.on_change(self._definition_changed)

    async def synced(self) -> None:
        """Returns when all of the kinds that are served now is known."""
        for informer in list(self._kinds.values()):
            await informer.answered()

    def all(self, plural: str) -> Sequence[Obj]:
        informer = self._kinds.get(plural)
        return () if informer is None else list(informer.cache.all())

    def resource(self, plural: str) -> Resource | None:
        informer = self._kinds.get(plural)
        return None if informer is None else informer.resource

    def _definition_changed(self, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        plural, _, group = name_of(obj).partition(".")
        if group != GROUP or plural not in _KINDS:
            return
        wanted = _served(plural, new)
        present = self.resource(plural)
        if wanted == present:
            return
        if present is not None:
            del self._kinds[plural]
            self._informers.release(present)
        if wanted is not None:
            informer = self._kinds[plural] = self._informers.of(wanted)
            informer.on_change(self._changed)
        self._came()


def _served(plural: str, definition: Obj | None) -> Resource | None:
    if definition is None or not is_true(definition, "Established"):
        return None
    versions = {each["name"] for each in definition["spec"]["versions"] if each.get("served")}
    found = next((version for version in _VERSIONS if version in versions), None)
    if found is None:
        return None
    return Resource(GROUP, found, _KINDS[plural], plural, namespaced=plural != CLASSES)
