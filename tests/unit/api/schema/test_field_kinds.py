"""Definitions become types."""

from sampan.api.schema.field_kinds import fields_from, short_name, type_from


def test_a_list_knows_its_keys_and_strategies():
    kind = type_from({
        "items": {"$ref": "io.k8s.api.core.v1.Container"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge,retainKeys",
    })  # fmt: skip
    assert kind.element.name == "io.k8s.api.core.v1.Container"
    assert (kind.list_type, kind.map_keys, kind.merge_key) == ("map", ("name",), "name")
    assert kind.strategies == ("merge", "retainKeys")


def test_a_list_without_a_word_is_atomic():
    assert type_from({"items": {"type": "string"}}).list_type == "atomic"


def test_objects_without_fields_are_free():
    assert type_from({"type": "object"}).shape == "any"
    assert type_from({"$ref": "io.k8s.apimachinery.pkg.runtime.RawExtension"}).shape == "any"
    assert fields_from({}) == {}


def test_types_that_decode_themselves_are_formats():
    assert type_from({"$ref": "io.k8s.apimachinery.pkg.api.resource.Quantity"}).format == "quantity"


def test_short_names_are_the_last_word():
    assert short_name("io.k8s.api.core.v1.Pod") == "Pod"
