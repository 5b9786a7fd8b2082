"""OpenAPI documents, version 2 and version 3, from the schema and the table of resources.

Job: definitions and operations → one JSON document. Pure.
Invariant: every reference in a document is defined in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.api.schema.enums import enums_of, item_enums_of
from sampan.api.schema.published import Schema
from sampan.apiserver.openapi.discovery_paths import resources_operation, root_operations
from sampan.apiserver.openapi.path_items import paths_v2, paths_v3
from sampan.apiserver.openapi.paths import TEXT, Operation, operations
from sampan.apiserver.openapi.zero_values import with_defaults

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SHARED = {
    "meta.k8s.io Status": f"{_META}.Status",
    "meta.k8s.io Patch": f"{_META}.Patch",
    "v1 DeleteOptions": f"{_META}.DeleteOptions",
    "version Info": "io.k8s.apimachinery.pkg.version.Info",
}
_TITLE = "Kubernetes"
_CUSTOM_INFO = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_BEARER = {"description": "Bearer Token authentication", "name": "authorization", "in": "header"}
# The types that decode themselves, as versions 2 and 3 publish them.
_SPECIAL_V2: dict[str, Obj] = {
    "quantity": {"type": "string"},
    "int-or-string": {"type": "string", "format": "int-or-string"},
    "micro-time": {"type": "string", "format": "date-time"},
}
_SPECIAL_V3: dict[str, Obj] = {
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "int-or-string": {
        "oneOf": [{"type": "integer"}, {"type": "string"}],
        "format": "int-or-string",
    },
    "micro-time": {"type": "string", "format": "date-time"},
}
Prose = Mapping[str, Sequence[Any]]  # name → [text, {field: text}]


def document_v3(schema: Schema, resources: Sequence[Resource], prose: Prose) -> Obj:
    """One group version, with everything that its kinds are made of."""
    told = [*resources_operation(resources), *operations(resources, _option_texts(prose))]
    kinds = (_kind_names(schema, row) for row in resources)
    document = _document_v3(schema, told, prose, set[str]().union(*kinds))
    if all(row.custom is not None for row in resources):
        document["info"] = _CUSTOM_INFO
        del document["components"]["securitySchemes"]
    return document


def root_document_v3(schema: Schema, operation: Operation, prose: Prose) -> Obj:
    """Of discovery, the version or the keys: see root_operations."""
    return _document_v3(schema, [operation], prose, set())


def _document_v3(
    schema: Schema, told: Iterable[Operation], prose: Prose, more_names: set[str]
) -> Obj:
    paths, names = paths_v3(told, lambda text: _name_for(schema, text))
    schemas = {
        name: _definition_v3(schema, name, prose)
        for name in sorted(_closure(schema, names | more_names))
    }
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": _number(schema)},
        "paths": paths,
        "components": {
            **({"schemas": schemas} if schemas else {}),
            "securitySchemes": {"BearerToken": {"type": "apiKey", **_BEARER}},
        },
    }


def document_v2(schema: Schema, resources: Sequence[Resource], prose: Prose) -> Obj:
    """Everything in one document, as older clients want it."""
    told = [
        *root_operations(resources).values(),
        *resources_operation(resources),
        *operations(resources, _option_texts(prose)),
    ]
    paths, names, parameters = paths_v2(told, lambda text: _name_for(schema, text))
    for row in resources:
        names |= _kind_names(schema, row)
    prefix = "#/definitions/"
    return {
        "swagger": "2.0",
        "info": {"title": _TITLE, "version": _number(schema)},
        "paths": paths,
        "parameters": parameters,
        "securityDefinitions": {"BearerToken": {"type": "apiKey", **_BEARER}},
        "security": [{"BearerToken": []}],
        "definitions": {
            name: _definition(schema, name, prose, _SPECIAL_V2, prefix)
            for name in sorted(_closure(schema, names))
        },
    }


def _number(schema: Schema) -> str:
    """`1.35`."""
    return ".".join(schema.version.removeprefix("v").split(".")[:2])


def _option_texts(prose: Prose) -> Mapping[str, str]:
    found: Mapping[str, str] = prose.get(_SHARED["v1 DeleteOptions"], ("", {}))[1]
    return found


def _kind_names(schema: Schema, row: Resource) -> set[str]:
    kinds = (row.kind, row.list_kind)
    found = (schema.name_of(row.api_version, kind) for kind in kinds)
    return {name for name in found if name}


def _closure(schema: Schema, names: Iterable[str]) -> set[str]:
    """The names, and all that their definitions refer to."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(schema.definition(name))
    return found


def _references(part: Obj) -> list[str]:
    found = [part["$ref"]] if "$ref" in part else []
    for prop in part.get("properties", {}).values():
        found += _references(prop)
    for key in ("items", "additionalProperties"):
        if key in part:
            found += _references(part[key])
    return found


def _definition(
    schema: Schema, name: str, prose: Prose, special: Mapping[str, Obj], prefix: str
) -> Obj:
    text, field_texts = prose.get(name, ("", {}))
    raw = schema.definition(name)
    out = _published_types(raw, special, prefix)
    if text:
        out["description"] = text
    for field, about in field_texts.items():
        out["properties"][field]["description"] = about
    for field, values in enums_of(name).items():
        out["properties"][field]["enum"] = values
        _list_values(out["properties"][field], values)
    for field, values in item_enums_of(name).items():
        out["properties"][field]["items"]["enum"] = values
    return out


def _list_values(prop: Obj, values: Sequence[str]) -> None:
    """The description ends with them; what each means is not among the published texts."""
    listed = "\n".join(f' - `"{value}"`' for value in values)
    text = prop.get("description", "")
    prop["description"] = f"{text}\n\nPossible enum values:\n{listed}"


def _definition_v3(schema: Schema, name: str, prose: Prose) -> Obj:
    out = _definition(schema, name, prose, _SPECIAL_V3, "#/components/schemas/")
    with_defaults(schema.definition, name, out)
    for prop in out.get("properties", {}).values():
        _keep_beside_references(prop)
    return out


def _keep_beside_references(part: Obj) -> None:
    """In version 3, what stands beside a reference is not read; allOf keeps both."""
    if "$ref" in part and len(part) > 1:
        part["allOf"] = [{"$ref": part.pop("$ref")}]
    for key in ("items", "additionalProperties"):
        if key in part:
            _keep_beside_references(part[key])


def _published_types(part: Obj, special: Mapping[str, Obj], prefix: str) -> Obj:
    if part.get("format") in special:
        return dict(special[part["format"]])
    out = dict(part)
    if "$ref" in out:
        out["$ref"] = prefix + out["$ref"]
    for key in ("items", "additionalProperties"):
        if key in out:
            out[key] = _published_types(out[key], special, prefix)
    if "properties" in out:
        out["properties"] = {
            name: _published_types(prop, special, prefix)
            for name, prop in out["properties"].items()
        }
    return out


def _name_for(schema: Schema, text: str) -> str | None:
    """The definition that an operation takes or gives, where one is published."""
    if not text or text == TEXT:
        return None
    api_version, _, kind = text.rpartition(" ")
    return _SHARED.get(text) or schema.name_of(api_version, kind)
