"""Strict reading of configuration documents."""

import pytest

from sampan.api.configuration import BadConfiguration, ConfigReader

KIND, VERSIONS = "Thing", ("example.com/v1", "example.com/v1beta1")


def document(**fields):
    return {"apiVersion": VERSIONS[1], "kind": KIND, **fields}


def test_a_document_is_of_its_kind_in_one_of_its_versions():
    reader = ConfigReader()
    assert reader.document(document(a=1), KIND, VERSIONS)["a"] == 1
    for wrong in (
        None,
        [],
        {},
        {**document(), "kind": "Other"},
        {**document(), "apiVersion": "v9"},
    ):
        with pytest.raises(BadConfiguration, match="Thing"):
            reader.document(wrong, KIND, VERSIONS)


def test_all_mistakes_are_named_at_once_with_their_paths():
    reader = ConfigReader()
    assert reader.mapping([], "a") == {}
    assert reader.items({}, "b") == []
    assert reader.number({"n": True}, "n", 5) == 5
    reader.known({"x": 1, "y": 2}, {"x"}, "c")
    with pytest.raises(BadConfiguration) as refused:
        reader.settle()
    assert refused.value.problems == [
        "a: expected an object",
        "b: expected a list",
        "n: True is no number",
        "c.y: unknown field",
    ]


def test_a_document_without_mistakes_is_taken():
    reader = ConfigReader()
    assert reader.mapping({"a": 1}, "a") == {"a": 1}
    assert reader.items(None, "b") == []
    assert reader.items([1], "b") == [1]
    assert reader.number({}, "n", 5) == 5
    reader.settle()
