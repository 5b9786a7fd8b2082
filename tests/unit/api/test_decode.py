"""The decoder's own words (its behaviour is tested through the Schema)."""

import pytest

from sampan.api.decode import go_type, zero_of
from sampan.api.decode_scalars import json_word, path_text
from sampan.api.schema.field_kinds import STRING, Type


def test_paths_print_keys_with_dots_and_indices_in_brackets():
    assert path_text(((((), "spec"), "containers"), 0)) == "spec.containers[0]"
    assert path_text(()) == ""


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("a", "string"),
        (1, "number"),
        (1.5, "number"),
        (True, "bool"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_values_have_gos_names(value, word):
    assert json_word(value) == word


def test_types_have_gos_names():
    container = Type("object", name="io.k8s.api.core.v1.Container")
    assert go_type(Type("list", element=container)) == "[]v1.Container"
    assert go_type(Type("map", element=STRING)) == "map[string]string"
    assert go_type(Type("string", format="byte")) == "[]uint8"
    assert go_type(Type("integer", format="int32")) == "int32"


def test_null_in_a_list_is_the_types_zero():
    assert zero_of(STRING) == ""
    assert zero_of(Type("string", format="quantity")) == "0"
    assert zero_of(Type("integer")) == 0
