"""Kinds of CustomResourceDefinitions, for controllers that deal with every kind.

Job: CustomResourceDefinition → Resource, for definitions that are served. Pure.
Invariant: a definition that nobody serves (not Established) adds no kind.
"""

from collections.abc import Callable, Iterable

from sampan.api.objects import Obj
from sampan.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource, by_kind
from sampan.api.rules.conditions import is_true
from sampan.controllers.controller import Caches

KindOf = Callable[[str, str], Resource | None]  # (apiVersion, kind) → what it is


def custom_resource(definition: Obj | None) -> Resource | None:
    """In the version that is stored, as long as that is served; otherwise the first that is."""
    if definition is None or not is_true(definition, "Established"):
        return None
    spec = definition["spec"]
    served = [item for item in spec["versions"] if item.get("served")]
    if not served:
        return None
    version = next((item for item in served if item.get("storage")), served[0])
    names = spec["names"]
    return Resource(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        namespaced=spec.get("scope") == "Namespaced",
    )


def custom_resources(caches: Caches) -> Iterable[Resource]:
    """All that are served now. Needs the cache of definitions."""
    found = (
        custom_resource(definition) for definition in caches(CUSTOM_RESOURCE_DEFINITIONS).all()
    )
    return [match_ for match_ in found if match_ is not None]


def with_custom(known: dict[str, Resource]) -> KindOf:
    """Looks among the built-in kinds, then among `known`, whatever it holds by then. A kind is the
    same in each of its versions."""

    def kind_of(api_version: str, kind: str) -> Resource | None:
        found = by_kind(api_version, kind)
        if found is not None:
            return found
        group = api_version.rpartition("/")[0]
        return next(
            (item for item in known.values() if (item.group, item.kind) == (group, kind)), None
        )

    return kind_of
