"""OpenAPI version 2 in protobuf: the only form that kubectl before 1.27 and Helm read.

Job: the JSON document → bytes of gnostic's openapi.v2.Document. Pure.
Only what those clients look at is written: definitions whole; of the paths, the operations with
their query parameters and extensions. Shared parameters are written where they are used.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from sampan.api.objects import Obj
from sampan.core.protobuf_wire import bytes_field

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}


def encode(document: Obj) -> bytes:
    info = document["info"]
    shared = {f"#/parameters/{name}": one for name, one in document.get("parameters", {}).items()}
    paths = (
        _message(2, _text(1, path), _message(2, *_path_item(item, shared)))
        for path, item in document["paths"].items()
    )
    return b"".join((
        _text(1, document["swagger"]),
        _message(2, _text(1, info["title"]), _text(2, info["version"])),
        _message(8, *paths),
        _message(9, *_named_schemas(document["definitions"])),
    ))  # fmt: skip


def _named_schemas(schemas: Obj) -> Iterable[bytes]:
    return (
        _message(1, _text(1, name), _message(2, *_schema(schema)))
        for name, schema in schemas.items()
    )


def _schema(schema: Obj) -> Iterable[bytes]:
    if "$ref" in schema:
        yield _text(1, schema["$ref"])
    if "format" in schema:
        yield _text(2, schema["format"])
    if "description" in schema:
        yield _text(4, schema["description"])
    for name in schema.get("required", ()):
        yield _text(19, name)
    if isinstance(schema.get("additionalProperties"), dict):
        yield _message(21, _message(1, *_schema(schema["additionalProperties"])))
    if "type" in schema:
        yield _message(22, _text(1, schema["type"]))
    if "items" in schema:
        yield _message(23, _message(1, *_schema(schema["items"])))
    if "properties" in schema:
        yield _message(25, *_named_schemas(schema["properties"]))
    yield from _extensions(31, schema)


def _path_item(item: Obj, shared: Obj) -> Iterable[bytes]:
    return (
        _message(number, *_operation(item[method], item, shared))
        for method, number in _METHODS.items()
        if method in item
    )


def _operation(operation: Obj, item: Obj, shared: Obj) -> Iterable[bytes]:
    for tag in operation.get("tags", ()):
        yield _text(1, tag)
    yield _text(5, operation.get("operationId", ""))
    for one in (*operation.get("parameters", ()), *item.get("parameters", ())):
        parameter = shared.get(one.get("$ref"), one)
        if parameter.get("in") == "query":
            query = _text(2, "query") + _text(4, parameter["name"])
            query += _text(6, parameter.get("type", "string"))
            # ParametersItem → Parameter → NonBodyParameter → QueryParameterSubSchema
            yield _message(8, _message(1, _message(2, _message(3, query))))
    yield _message(9)
    yield from _extensions(13, operation)


def _extensions(number: int, holder: Obj) -> Iterable[bytes]:
    """As NamedAny{name, Any{yaml}}: JSON is YAML."""
    return (
        _message(number, _text(1, key), _message(2, _text(2, _yaml(value))))
        for key, value in holder.items()
        if key.startswith("x-")
    )


def _yaml(value: Any) -> str:
    return orjson.dumps(value).decode() + "\n"


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode())


def _message(number: int, *parts: bytes) -> bytes:
    """A length-delimited field; texts and inner messages look the same on the wire."""
    return bytes_field(number, b"".join(parts))
