"""api/schema/enums.py: closed sets of values belong to fields that there are."""

from sampan.api.schema.enums import enums_of, item_enums_of
from sampan.api.schema.published import Schema
from sampan.core.files.packaged_data import packaged_data


def test_every_field_of_the_table_is_a_string_of_its_definition():
    schema = Schema.load()
    for name in packaged_data("enums")["definitions"]:
        fields = schema.fields_of(name)
        for field, values in enums_of(name).items():
            assert fields[field].shape == "string", (name, field)
            assert values == sorted(set(values)), (name, field)
        for field, values in item_enums_of(name).items():
            assert fields[field].shape == "list", (name, field)
            assert fields[field].element.shape == "string", (name, field)
            assert values == sorted(set(values)), (name, field)
        assert enums_of(name) or item_enums_of(name)


def test_what_has_no_closed_set_has_none():
    assert enums_of("io.k8s.api.core.v1.ConfigMap") == {}
    assert item_enums_of("io.k8s.api.core.v1.ConfigMap") == {}


def test_fields_and_items_of_lists_are_told_apart():
    claim = "io.k8s.api.core.v1.PersistentVolumeClaimSpec"
    assert enums_of(claim) == {"volumeMode": ["Block", "Filesystem"]}
    modes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]
    assert item_enums_of(claim) == {"accessModes": modes}
