"""From a CustomResourceDefinition to the resources that it defines. Pure.

Job: one row per served version, each with its compiled schema behind it.
Invariant: a definition that is not Established defines nothing yet.
"""

from collections.abc import Sequence

from sampan.api.custom.custom_version import CustomKind, CustomVersion, custom_of
from sampan.api.objects import Obj
from sampan.api.resources import SCALE, STATUS, Resource, Subresource
from sampan.api.rules.conditions import is_true
from sampan.api.schema.published import Schema

# In the order in which upstream's discovery has them.
VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def rows_of(
    definition: Obj, published: Schema, before: Sequence[Resource] = ()
) -> tuple[Resource, ...]:
    """Versions that did not change keep what was compiled of them before."""
    if not is_true(definition, "Established"):
        return ()
    known = {item.version: custom_of(item) for item in before}
    families = {id(custom.family): custom.family for custom in known.values() if custom}
    for family in families.values():
        if family.definition["spec"] == definition["spec"]:  # it tells of itself only
            family.follow(definition)
            return tuple(before)
    kind = CustomKind(definition, published)
    shown_alike = all(kind.shows_as(family) for family in families.values())
    rows = []
    for version in kind.versions.values():
        if not version.is_served:
            continue
        old = known.get(version.version)
        if old is not None and old.same_as(version):
            version.adopt(old, shown_alike)
        rows.append(_row(definition["spec"], version))
    return tuple(rows)


def _row(spec: Obj, version: CustomVersion) -> Resource:
    names = spec["names"]
    return Resource(
        version.group,
        version.version,
        version.kind,
        version.plural,
        spec.get("scope") == "Namespaced",
        tuple(names.get("shortNames") or ()),
        tuple(names.get("categories") or ()),
        VERBS,
        tuple(_subresources(version)),
        custom=version,
    )


def _subresources(version: CustomVersion) -> list[Subresource]:
    found = [STATUS] if version.has_status else []
    return [*found, SCALE] if version.scale is not None else found
