from sampan.api.schema.enums import _ENUMS, enums_of
from sampan.api.schema.published import Schema


def test_every_field_of_the_table_is_a_string_of_its_definition():
    schema = Schema.load()
    for package, kinds in _ENUMS.items():
        for kind in kinds:
            fields = schema.fields_of(f"{package}.{kind}")
            for field, values in enums_of(f"{package}.{kind}").items():
                assert fields[field].shape == "string", (kind, field)
                assert values == sorted(set(values)), (kind, field)


def test_what_has_no_closed_set_has_none():
    assert enums_of("io.k8s.api.core.v1.ConfigMap") == {}
