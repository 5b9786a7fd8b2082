"""Requests made from the OpenAPI documents that the server itself publishes: for fuzzing the API.

Job: Hypothesis strategies for every operation of the documents: path, query, body by their schemas,
    mostly as they say, now and then not.
Invariant: nothing here knows of a kind: what the documents do not say is not asked.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import orjson
from hypothesis import strategies as st

from sampan.api.objects import Obj, copy_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Request

METHODS = ("get", "put", "post", "delete", "patch")
REF = "#/components/schemas/"
DEPTH = 9  # below this only what is required; schemas refer to themselves
PATH_VALUES = {
    "namespace": st.sampled_from(("default",) * 8 + ("kube-system", "nosuch", "ü")),
    "name": st.sampled_from(("a",) * 6 + ("b",) * 3 + ("web", "default", "x" * 254, "A_", "%2e")),
    "path": st.sampled_from(("", "a/b", "../..", "%2F")),
}
QUERY_VALUES = {
    "dryRun": st.sampled_from(("All",) * 4 + ("", "none")),
    "fieldValidation": st.sampled_from(("Strict", "Warn", "Ignore", "Strict", "Warn", "odd")),
    "propagationPolicy": st.sampled_from(("Orphan", "Foreground", "Background", "odd")),
    "fieldManager": st.sampled_from(("a", "b", "c", "x" * 129, "")),
    "timeoutSeconds": st.sampled_from(("0", "1", "-1")),
}
TEXTS = st.sampled_from(
    ("a", "b", "default", "web", "", "0", "-1", "80%", "100m", "1Gi", "1e999", "a/b", "true", "5s",
     "example.org/a", "a=b", "a in (b)", "!a", "metadata.name=a", "10.0.0.1", "::1", "10.0.0.0/8",
     "Always", "TCP", "All", "Strict", "Ignore", "Exact", "Never", "Retain", "ClusterIP", "x" * 300,
     "\x00", "ü", "\U0001f600", "{}", "null", "2026-01-01T00:00:00Z", "../..", "$(A)", "*", "v1")
) | st.text(max_size=4)  # fmt: skip
INTEGERS = st.sampled_from(
    (0, 1, 2, 30, 1, 2, -1, 80, 65536, 2**31 - 1, 2**31, 2**63 - 1, -(2**63))
)
NUMBERS = INTEGERS | st.sampled_from((0.5, -0.0, 1e308))
FORMATS: dict[str, st.SearchStrategy[Any]] = {
    "byte": st.sampled_from(("", "YQ==", "YQ", "*", "e30=")),
    "date-time": st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+02:00", "x", "")),
    "int-or-string": INTEGERS | TEXTS,
}
ANYTHING: st.SearchStrategy[Any] = st.sampled_from(
    (None, True, 0, "", "a", [], {}, [None], {"a": [1]}, [[]], {"": {}})
)
PATCH_PATHS = st.sampled_from(
    ("/metadata/labels", "/metadata/labels/a", "/spec", "", "/", "/spec/containers/0", "/data/~1",
     "/metadata/name", "/status", "/spec/replicas", "/kind", "/spec/containers/-", "no")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str  # with {namespace} and {name}
    parameters: Sequence[Obj]
    bodies: Mapping[str, Obj]  # media type → schema
    kind: Obj  # group, version, kind
    schemas: Mapping[str, Obj]  # of its document


def operations(documents: Sequence[Obj]) -> list[Operation]:
    found = []
    for document in documents:
        schemas = document.get("components", {}).get("schemas", {})
        for path, described in document["paths"].items():
            shared = described.get("parameters", [])
            for method in METHODS:
                if method not in described:
                    continue
                one = described[method]
                content = one.get("requestBody", {}).get("content", {})
                found.append(
                    Operation(
                        method.upper(), path, [*shared, *one.get("parameters", [])],
                        {media: body.get("schema", {}) for media, body in content.items()},
                        one.get("x-kubernetes-group-version-kind") or {}, schemas,
                    )
                )  # fmt: skip
    return found


def requests(asked: Sequence[Operation], certificate: bytes) -> st.SearchStrategy[Request]:
    """By number: Hypothesis prints what a strategy is made of, and these are megabytes."""
    return _request_of(range(len(asked)), lambda number: asked[number], certificate)


@st.composite
def _request_of(
    draw: st.DrawFn, numbers: range, numbered: Callable[[int], Operation], certificate: bytes
) -> Request:
    operation = numbered(draw(st.sampled_from(numbers)))
    path, query = operation.path, []
    for parameter in operation.parameters:
        name, schema = parameter["name"], parameter.get("schema", {})
        if parameter["in"] == "path":
            value = draw(PATH_VALUES.get(name, TEXTS))
            path = path.replace("{" + name + "}", quote(value, safe="/%"))
        elif parameter.get("required") or draw(_ONE_IN_EIGHT):
            known = QUERY_VALUES.get(name)
            given = draw(known) if known is not None else _value(draw, operation, schema, 0)
            query.append(f"{name}={quote(_text(given))}")
    headers = {"accept": "application/json"}
    body = b""
    if operation.bodies and (operation.method != "DELETE" or draw(st.booleans())):
        media = draw(st.sampled_from(sorted(operation.bodies)))
        headers["content-type"] = "application/json" if media == "*/*" else media
        body = _body(draw, operation, media)
    return Request(
        operation.method, path, "&".join(query), headers, body,
        peer_certificate=certificate, remote="127.0.0.1",
    )  # fmt: skip


_ONE_IN_EIGHT = st.sampled_from((False,) * 7 + (True,))
_ONE_IN_FIFTY = st.sampled_from((False,) * 49 + (True,))


def _body(draw: st.DrawFn, operation: Operation, media: str) -> bytes:
    if media == "application/json-patch+json":
        return orjson.dumps([_json_patch(draw) for _ in range(draw(st.integers(0, 3)))])
    schema = operation.bodies[media]
    if operation.method == "PATCH":
        schema = _schema_of_kind(operation)
    made = _value(draw, operation, schema, 0)
    if isinstance(made, dict) and not draw(_ONE_IN_FIFTY):
        _name(draw, operation, made)
    return orjson.dumps(made)


def _json_patch(draw: st.DrawFn) -> Obj:
    return {
        "op": draw(st.sampled_from(("add", "remove", "replace", "move", "copy", "test", "odd"))),
        "path": draw(PATCH_PATHS),
        "from": draw(PATCH_PATHS),
        "value": copy_of(draw(ANYTHING)),
    }


def _schema_of_kind(operation: Operation) -> Obj:
    """What is patched, of which the documents say only that it is patched."""
    for schema in operation.schemas.values():
        if operation.kind in schema.get("x-kubernetes-group-version-kind", ()):
            return schema
    return {"type": "object"}


def _name(draw: st.DrawFn, operation: Operation, made: Obj) -> None:
    kind = operation.kind
    if kind and kind["kind"] != "DeleteOptions" and operation.method != "DELETE":
        made["kind"] = kind["kind"]
        made["apiVersion"] = "/".join(filter(None, (kind.get("group"), kind["version"])))
    if not draw(_ONE_IN_EIGHT):
        metadata = made.get("metadata")
        made["metadata"] = {
            **(metadata if isinstance(metadata, dict) and draw(_ONE_IN_EIGHT) else {}),
            "name": draw(PATH_VALUES["name"]),
        }


def _value(draw: st.DrawFn, operation: Operation, schema: Obj, depth: int) -> Any:
    if draw(_ONE_IN_FIFTY):
        return copy_of(draw(ANYTHING))
    reference = schema.get("$ref")
    for item in schema.get("allOf", ()):
        reference = item.get("$ref") or reference
    if reference:
        return _value(draw, operation, operation.schemas[reference[len(REF) :]], depth)
    if schema.get("oneOf") or schema.get("anyOf"):
        offered = [*schema.get("oneOf", ()), *schema.get("anyOf", ())]
        return _value(draw, operation, {**draw(st.sampled_from(offered))}, depth)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]) | TEXTS)
    if schema.get("format") in FORMATS:
        return draw(FORMATS[schema["format"]])
    match schema.get("type"):
        case "object":
            return _object(draw, operation, schema, depth)
        case "array":
            count = 0 if depth > DEPTH else draw(st.sampled_from((0, 1, 1, 2)))
            return [_value(draw, operation, schema["items"], depth + 1) for _ in range(count)]
        case "string":
            return draw(TEXTS)
        case "integer":
            return draw(INTEGERS)
        case "number":
            return draw(NUMBERS)
        case "boolean":
            return draw(st.booleans())
    return copy_of(draw(ANYTHING))


def _object(draw: st.DrawFn, operation: Operation, schema: Obj, depth: int) -> Obj:
    fields = schema.get("properties", {})
    required = [key for key in schema.get("required", ()) if key in fields]
    optional = sorted(set(fields) - set(required) - {"status"})
    wanted: list[str] = []
    if optional and depth <= DEPTH:
        at_most = 6 if depth < 3 else 2
        wanted = draw(st.lists(st.sampled_from(optional), unique=True, max_size=at_most))
    made = {
        key: _value(draw, operation, fields[key], depth + 1)
        for key in [*required, *wanted, *(["status"] if "status" in fields and depth == 0 else [])]
        if not draw(_ONE_IN_FIFTY)
    }
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict) and depth <= DEPTH:
        for _ in range(draw(st.sampled_from((0, 1, 2)))):
            made[draw(TEXTS)] = _value(draw, operation, inner, depth + 1)
    return made


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode()
