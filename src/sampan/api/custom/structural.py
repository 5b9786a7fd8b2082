"""Structural schemas: what a CustomResourceDefinition says about its objects, as a tree.

Job: JSONSchemaProps → Structural, which the compilers beside this module turn into closures. Pure.
Invariant: a tree never changes; where the definition says nothing a node has the zero value.
"""

from typing import Any

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
_X = "x-kubernetes-"


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()  # where None is a value like any other


@dataclass(frozen=True, slots=True, eq=False)
class Structural:
    """One node. `schema` is what was written, for the value validations that are read from it."""

    schema: Obj
    type: str
    properties: dict[str, "Structural"]
    items: "Structural | None"
    # A schema for every other key; True or False: are there any? None: nothing was said.
    additional: "Structural | bool | None"
    nullable: bool
    default: Any  # MISSING where there is none
    preserve: bool
    embedded: bool
    int_or_string: bool
    list_type: str
    map_keys: tuple[str, ...]
    map_type: str
    rules: tuple[Obj, ...]


def structural_of(schema: Obj) -> Structural:
    properties = schema.get("properties") or {}
    items, additional = schema.get("items"), schema.get("additionalProperties")
    default = schema.get("default", MISSING)
    return Structural(
        schema,
        schema.get("type") or "",
        {key: structural_of(prop) for key, prop in properties.items()},
        structural_of(items) if isinstance(items, dict) else None,
        structural_of(additional) if isinstance(additional, dict) else additional,
        bool(schema.get("nullable")),
        MISSING if default is None else default,
        bool(schema.get(f"{_X}preserve-unknown-fields")),
        bool(schema.get(f"{_X}embedded-resource")),
        bool(schema.get(f"{_X}int-or-string")),
        schema.get(f"{_X}list-type") or "",
        tuple(schema.get(f"{_X}list-map-keys") or ()),
        schema.get(f"{_X}map-type") or "",
        tuple(schema.get(f"{_X}validations") or ()),
    )


def nodes_below(node: Structural) -> list[Structural]:
    below = list(node.properties.values())
    if node.items is not None:
        below.append(node.items)
    if isinstance(node.additional, Structural):
        below.append(node.additional)
    return below


def has_rules(node: Structural) -> bool:
    return bool(node.rules) or any(has_rules(item) for item in nodes_below(node))


def parts_of(schema: Obj) -> list[Obj]:
    """Every schema directly below one, as it was written."""
    found = list((schema.get("properties") or {}).values())
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            found.append(schema[key])
    for key in ("allOf", "anyOf", "oneOf"):
        found.extend(schema.get(key) or ())
    return found
