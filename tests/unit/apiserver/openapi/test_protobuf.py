"""The protobuf form, read back field by field."""

from hypothesis import given
from hypothesis import strategies as st

from sampan.apiserver.openapi.protobuf import encode

DOCUMENT = {
    "swagger": "2.0",
    "info": {"title": "T", "version": "v1"},
    "paths": {
        "/x": {
            "patch": {
                "tags": ["t"],
                "operationId": "patchX",
                "parameters": [
                    {"name": "dryRun", "in": "query", "type": "string"},
                    {"name": "body", "in": "body", "schema": {}},
                ],
                "x-kubernetes-group-version-kind": {"kind": "X"},
            }
        }
    },
    "definitions": {
        "a.X": {
            "type": "object",
            "description": "An x.",
            "required": ["items"],
            "properties": {
                "items": {"type": "array", "items": {"$ref": "#/definitions/a.Y"}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "x-kubernetes-group-version-kind": [{"kind": "X"}],
        }
    },
}


def fields(data):
    """{number: [bytes]} of one message that has only length-delimited fields."""
    out, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 == 2
        size, at = varint(data, at)
        out.setdefault(key >> 3, []).append(data[at : at + size])
        at += size
    return out


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def down(data, *numbers):
    for number in numbers:
        (data,) = fields(data)[number]
    return data


def test_definitions_are_whole():
    """[A5] OpenAPI v2 for kubectl before 1.27."""
    document = encode(DOCUMENT)
    assert down(document, 1) == b"2.0"
    assert down(document, 2, 1) == b"T"
    named = down(document, 9, 1)
    assert down(named, 1) == b"a.X"
    schema = down(named, 2)
    assert down(schema, 4) == b"An x."
    assert down(schema, 19) == b"items"
    assert down(schema, 22, 1) == b"object"
    items, mapping = fields(down(schema, 25))[1]
    assert down(items, 2, 23, 1, 1) == b"#/definitions/a.Y"
    assert down(mapping, 2, 21, 1, 22, 1) == b"string"
    assert down(schema, 31, 1) == b"x-kubernetes-group-version-kind"
    assert down(schema, 31, 2, 2) == b'[{"kind":"X"}]\n'


def test_operations_carry_query_parameters_and_their_kind():
    item = down(encode(DOCUMENT), 8, 2)
    assert down(item, 1) == b"/x"
    patch = down(item, 2, 8)
    assert down(patch, 5) == b"patchX"
    query = down(patch, 8, 1, 2, 3)
    assert (down(query, 2), down(query, 4), down(query, 6)) == (b"query", b"dryRun", b"string")
    assert down(patch, 13, 2, 2) == b'{"kind":"X"}\n'


def test_shared_parameters_are_written_where_they_are_used():
    """Older clients look for dryRun among the operation's own."""
    shared = {"limit-x": {"name": "limit", "in": "query", "type": "integer"}}
    paths = {"/x": {"get": {}, "parameters": [{"$ref": "#/parameters/limit-x"}]}}
    document = {**DOCUMENT, "paths": paths, "parameters": shared}
    assert down(encode(document), 8, 2, 2, 2, 8, 1, 2, 3, 4) == b"limit"


@given(st.text(max_size=400))
def test_texts_of_any_length_survive(text):
    document = {**DOCUMENT, "definitions": {"a": {"description": text}}}
    assert down(encode(document), 9, 1, 2, 4).decode() == text
