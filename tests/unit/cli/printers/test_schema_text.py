"""cli/printers/schema_text.py: what `explain` says of a schema."""

import pytest

from sampan.cli.printers.schema_text import field_text, type_text

SCHEMAS = {
    "io.k8s.Tree": {
        "type": "object",
        "description": "A tree.",
        "required": ["kind"],
        "properties": {
            "kind": {"type": "string", "enum": ["a", "", "c", "d", "e"], "description": "Which."},
            "children": {"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.Tree"}},
            "size": {"$ref": "#/components/schemas/io.k8s.Size"},
        },
    },
    "io.k8s.Size": {"type": "string", "description": "How large."},
}
TREE = SCHEMAS["io.k8s.Tree"]


def text(*path, recursive=False):
    return field_text(SCHEMAS, TREE, list(path), recursive=recursive)


def test_a_field_is_described_with_its_choices():
    assert text("kind") == (
        'FIELD: kind <string>\nENUM:\n    a\n    ""\n    c\n    d\n    e\n\n'
        "DESCRIPTION:\n    Which.\n    \n"
    )
    listed = text()
    assert '  kind\t<string> -required-\n  enum: a, "", c, d, ....\n    Which.\n\n' in listed
    assert "  size\t<string>\n    <no description>\n\n" in listed


def test_a_way_leads_through_lists_and_references():
    found = text("children", "children", "size")
    assert found == "FIELD: size <string>\n\n\nDESCRIPTION:\n    How large.\n    \n"
    assert text("children", "nope") == ""


def test_a_schema_within_itself_is_shown_once_on_each_way():
    listed = text(recursive=True)
    assert listed.count("children\t<[]Tree>") == 2


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "object"}, "Object"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "map[string]string"),
        ({"allOf": [{"$ref": "#/components/schemas/io.k8s.Tree"}]}, "Tree"),
        ({"allOf": [{"$ref": "#/components/schemas/io.k8s.Size"}]}, "string"),
        ({}, "Object"),
    ],
)
def test_types_are_named_as_kubectl_names_them(schema, shown):
    assert type_text(SCHEMAS, schema) == shown
