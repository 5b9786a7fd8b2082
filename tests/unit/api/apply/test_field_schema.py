"""Which type is owned in which way. [A7]"""

import pytest

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_types import KeyedList, Leaf, Map, Struct
from sampan.api.schema.published import Schema
from tests.support.releases import rows_of

SCHEMA = Schema.load()
FIELDS = FieldSchema(SCHEMA)


def at(api_version, kind, *path):
    node = FIELDS.root(api_version, kind)
    for key in path:
        node = node.fields[key] if isinstance(node, Struct) else node.element
    return node


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("metadata", "labels"), Map),
        (("spec",), Struct),
        (("spec", "containers"), KeyedList),
        (("spec", "containers", "item", "ports"), KeyedList),
        (("spec", "volumes", "item", "emptyDir"), Struct),
        (("metadata", "finalizers"), KeyedList),
        (("metadata", "ownerReferences"), KeyedList),
    ],
)
def test_parts_of_a_pod_have_owners_of_their_own(path, kind):
    assert isinstance(at("v1", "Pod", *path), kind)


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("v1", "Pod", ("spec", "containers", "item", "command")),  # a list without a type
        ("v1", "Pod", ("spec", "tolerations")),
        ("v1", "Pod", ("spec", "nodeSelector")),  # atomic by its property
        ("apps/v1", "Deployment", ("spec", "selector")),  # atomic by its definition
        ("apps/v1", "ControllerRevision", ("data",)),  # free
    ],
)
def test_some_are_owned_as_a_whole(api_version, kind, path):
    assert isinstance(at(api_version, kind, *path), Leaf)


def test_a_property_can_open_an_atomic_type():
    """PersistentVolumeSpec.claimRef is granular, other ObjectReferences are not."""
    assert isinstance(at("v1", "PersistentVolume", "spec", "claimRef"), Struct)
    assert isinstance(at("v1", "Event", "involvedObject"), Leaf)


def test_a_schema_that_holds_itself_ends():
    node = at("apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec", "versions")
    assert isinstance(node, Leaf)
    assert FIELDS.root("v9", "Nothing") is None


@pytest.mark.slow
def test_every_kind_has_its_types():
    for row in rows_of():
        assert isinstance(FIELDS.root(row.api_version, row.kind), Struct), row
