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
from sampan.apiserver.openapi.paths import Operation, operations, parameter_type
from sampan.apiserver.openapi.zero_values import with_defaults

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SHARED = {
    "meta.k8s.io Status": f"{_META}.Status",
    "meta.k8s.io Patch": f"{_META}.Patch",
    "v1 DeleteOptions": f"{_META}.DeleteOptions",
}
_TITLE = "Kubernetes"
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
    paths, names = _paths_v3(schema, resources)
    for row in resources:
        names |= _kind_names(schema, row)
    schemas = {
        name: _definition_v3(schema, name, prose) for name in sorted(_closure(schema, names))
    }
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": schema.version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def document_v2(schema: Schema, resources: Sequence[Resource], prose: Prose) -> Obj:
    """Everything in one document, as older clients want it."""
    paths, names = _paths_v2(schema, resources)
    for row in resources:
        names |= _kind_names(schema, row)
    prefix = "#/definitions/"
    return {
        "swagger": "2.0",
        "info": {"title": _TITLE, "version": schema.version},
        "paths": paths,
        "definitions": {
            name: _definition(schema, name, prose, _SPECIAL_V2, prefix)
            for name in sorted(_closure(schema, names))
        },
    }


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
    for field, values in item_enums_of(name).items():
        out["properties"][field]["items"]["enum"] = values
    return out


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


def _shared_fields(operation: Operation) -> Obj:
    return {
        "tags": [operation.tag],
        "operationId": operation.operation_id,
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": operation.kind,
    }


def _name_for(schema: Schema, text: str) -> str | None:
    """The definition that an operation takes or gives, where one is published."""
    if not text:
        return None
    api_version, _, kind = text.rpartition(" ")
    return _SHARED.get(text) or schema.name_of(api_version, kind)


def _paths_v3(schema: Schema, resources: Sequence[Resource]) -> tuple[Obj, set[str]]:
    paths: Obj = {}
    names: set[str] = set()
    for operation in operations(resources):
        takes, gives = _name_for(schema, operation.takes), _name_for(schema, operation.gives)
        names |= {name for name in (takes, gives) if name}
        out = _shared_fields(operation)
        out["parameters"] = [_query_v3(name) for name in operation.query]
        if takes:
            body = {"schema": {"$ref": f"#/components/schemas/{takes}"}}
            out["requestBody"] = {"content": dict.fromkeys(operation.consumes, body)}
        answer: Obj = {"description": "OK"}
        if gives:
            media = {"schema": {"$ref": f"#/components/schemas/{gives}"}}
            answer["content"] = {"application/json": media}
        out["responses"] = {"200": answer, "401": {"description": "Unauthorized"}}
        item = paths.setdefault(
            operation.path, {"parameters": [_in_path_v3(key) for key in operation.in_path]}
        )
        item[operation.method] = out
    return paths, names


def _query_v3(name: str) -> Obj:
    kind = {"type": parameter_type(name), "uniqueItems": True}
    return {"name": name, "in": "query", "schema": kind}


def _in_path_v3(name: str) -> Obj:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _paths_v2(schema: Schema, resources: Sequence[Resource]) -> tuple[Obj, set[str]]:
    paths: Obj = {}
    names: set[str] = set()
    for operation in operations(resources):
        takes, gives = _name_for(schema, operation.takes), _name_for(schema, operation.gives)
        names |= {name for name in (takes, gives) if name}
        out = _shared_fields(operation)
        out |= {"consumes": list(operation.consumes), "produces": ["application/json"]}
        out["parameters"] = [
            {"name": name, "in": "query", "type": parameter_type(name)} for name in operation.query
        ]
        if takes:
            body = {"$ref": f"#/definitions/{takes}"}
            out["parameters"].append({"name": "body", "in": "body", "schema": body})
        answer: Obj = {"description": "OK"}
        if gives:
            answer["schema"] = {"$ref": f"#/definitions/{gives}"}
        out["responses"] = {"200": answer, "401": {"description": "Unauthorized"}}
        in_path = [
            {"name": key, "in": "path", "required": True, "type": "string"}
            for key in operation.in_path
        ]
        paths.setdefault(operation.path, {"parameters": in_path})[operation.method] = out
    return paths, names
