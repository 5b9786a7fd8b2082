"""A strategic merge patch over an object of any kind.

Job: by the schema where the kind is known; else maps are merged and lists are replaced.
Invariant: of a list that is merged, what the patch names comes first, as kustomize has it.
"""

from collections.abc import Iterator
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.api.patch.merge_patch import merged_value
from sampan.api.patch.strategic_patch import strategic_patch
from sampan.api.resources import by_kind
from sampan.api.schema.field_kinds import Type
from sampan.api.schema.published import Schema
from sampan.cli.errors import CliError
from sampan.cli.kustomize.resource import Gvk
from sampan.cli.objects.typed import schema


def merged(obj: Obj, change: Obj, gvk: Gvk, own_types: Schema | None = None) -> Obj:
    """`own_types`: of the kustomization. Raises CliError."""
    body = {key: value for key, value in change.items() if key not in ("apiVersion", "kind")}
    version = f"{gvk.group}/{gvk.version}" if gvk.group else gvk.version
    if own_types is not None:
        is_known = own_types.name_of(version, gvk.kind) is not None
    else:
        is_known = by_kind(version, gvk.kind) is not None
    found: Any = merged_value(obj, body)
    if is_known:
        found = _by_type(own_types or schema(), version, gvk.kind, obj, body)
    return {**found, **{key: change[key] for key in ("apiVersion", "kind") if key in change}}


def _by_type(types: Schema, version: str, kind: str, obj: Obj, body: Obj) -> Any:
    try:
        found = strategic_patch(types, version, kind, obj, body)
    except ApiError as error:
        raise CliError(error.message) from error
    return _in_order(types, types.type_of(version, kind), found, body)


def _in_order(types: Schema, kind: Type | None, found: Any, change: Any) -> Any:
    if kind is None or not isinstance(found, dict) or not isinstance(change, dict):
        return found
    return {
        field: _field_in_order(types, types.field(kind, field), value, change[field])
        if field in change
        else value
        for field, value in found.items()
    }


def _field_in_order(types: Schema, kind: Type | None, found: Any, change: Any) -> Any:
    if kind is None or not isinstance(found, list) or not isinstance(change, list):
        return _in_order(types, kind, found, change)
    if "merge" not in kind.strategies:
        return found
    key = kind.merge_key
    if not key:
        first = [item for item in change if item in found]
        return [*first, *(item for item in found if item not in first)]
    named = {str(each.get(key)): each for each in change if isinstance(each, dict)}
    return list(_first_named(types, kind.element, found, named, key))


def _first_named(
    types: Schema, kind: Type | None, found: list[Any], named: dict[str, Any], key: str
) -> Iterator[Any]:
    for name, change in named.items():
        for item in found:
            if str(item.get(key)) == name:
                yield _in_order(types, kind, item, change)
    yield from (item for item in found if str(item.get(key)) not in named)
