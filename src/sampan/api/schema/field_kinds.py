"""What the published definitions say about one field, in the words that the code uses.

Job: a definition's JSON → Type values. Pure.
Invariant: an object type is named, never expanded, so that types that hold themselves stay finite.
"""

from typing import Literal

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

Shape = Literal["object", "list", "map", "string", "integer", "number", "boolean", "any"]
ListType = Literal["atomic", "set", "map"]


@dataclass(frozen=True, slots=True)
class Type:
    shape: Shape
    format: str = ""  # int32, int64, double, byte, date-time, micro-time, quantity, int-or-string
    name: str = ""  # of the definition, where the shape is object (or any)
    element: "Type | None" = None  # of a list's items, of a map's values
    list_type: ListType = "atomic"
    map_keys: tuple[str, ...] = ()  # which fields tell the items of a map-like list apart
    merge_key: str = ""  # strategic merge patch: which field tells items apart
    strategies: tuple[str, ...] = ()  # strategic merge patch: merge, replace, retainKeys


ANY = Type("any")
STRING = Type("string")

# Definitions whose JSON form is free, or decided by their own code upstream.
_FREE = frozenset({
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
})  # fmt: skip
_SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "date-time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "micro-time",
}


def type_from(schema: Obj) -> Type:
    """The Type of one property, list item or map value."""
    strategies = tuple(filter(None, schema.get("x-kubernetes-patch-strategy", "").split(",")))
    if "$ref" in schema:
        return _reference_type(schema["$ref"], strategies)
    if "items" in schema:
        return Type(
            "list",
            element=type_from(schema["items"]),
            list_type=schema.get("x-kubernetes-list-type", "atomic"),
            map_keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
            merge_key=schema.get("x-kubernetes-patch-merge-key", ""),
            strategies=strategies,
        )
    if "additionalProperties" in schema:
        element = type_from(schema["additionalProperties"])
        return Type("map", element=element, strategies=strategies)
    shape = schema.get("type", "any")
    if shape == "object":
        return ANY  # free-form: nothing is known about its fields
    return Type(shape, format=schema.get("format", ""), strategies=strategies)


def fields_from(definition: Obj) -> dict[str, Type]:
    return {name: type_from(prop) for name, prop in definition.get("properties", {}).items()}


def short_name(name: str) -> str:
    """`Container`, from `io.k8s.api.core.v1.Container`."""
    return name.rpartition(".")[2]


def _reference_type(name: str, strategies: tuple[str, ...]) -> Type:
    if name in _SCALARS:
        return Type("string", format=_SCALARS[name])
    if name in _FREE:
        return Type("any", name=name)
    return Type("object", name=name, strategies=strategies)
