"""Tables over every kind."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.errors import BadRequest
from sampan.api.resources import (
    CONFIG_MAPS,
    PODS,
    Resource,
    by_plural,
)
from sampan.api.schema.published import Schema
from sampan.apiserver.printers.table import TableForm, cells, columns, table_of
from tests.support.releases import rows_of

SCHEMA = Schema.load()
# What v1.35.8 answers with: name, type, format, priority, and a digest of the description.
RECORDED = json.loads(Path(__file__).with_name("columns_recorded.json").read_text())
SCALES = Resource("autoscaling", "v1", "Scale", "scales")
NOW = 1_700_000_000.0
SCALARS = {
    "date-time": st.just("2023-11-14T00:00:00Z"),
    "micro-time": st.just("2023-11-14T00:00:00.000000Z"),
    "quantity": st.sampled_from(["0", "1", "100m", "1Gi"]),
    "int-or-string": st.sampled_from([1, "50%"]),
    "byte": st.just("YQ=="),
}
SHAPES = {
    "string": st.sampled_from(["", "x", "Ready", "Failed", "Resource"]),
    "integer": st.integers(0, 3),
    "number": st.integers(0, 3),
    "boolean": st.booleans(),
    "any": st.just({}),
}


def values(kind, depth):
    """Whatever the schema allows for a type, a few levels deep."""
    if kind.format in SCALARS:
        return SCALARS[kind.format]
    if kind.shape in SHAPES:
        return SHAPES[kind.shape]
    if kind.shape == "map":
        return st.dictionaries(st.sampled_from(["a", "b"]), values(kind.element, depth), max_size=2)
    if kind.shape == "list":
        return st.lists(values(kind.element, depth), max_size=2)
    if depth == 0:
        return st.just({})
    fields = SCHEMA.fields_of(kind.name)
    return st.fixed_dictionaries(
        {},
        optional={
            key: st.deferred(lambda one=one: values(one, depth - 1)) for key, one in fields.items()
        },
    )


PRINTED = st.sampled_from([row for row in rows_of() if "list" in row.verbs])
OBJECTS = PRINTED.flatmap(
    lambda row: st.tuples(st.just(row), values(SCHEMA.type_of(row.api_version, row.kind), 4))
)


def cells_of(resource):
    return len(columns(resource)) + (resource.plural == "ipaddresses")


def row_of(column):
    digest = hashlib.sha256(column["description"].encode()).hexdigest()[:8]
    return [*(column[key] for key in ("name", "type", "format", "priority")), digest]


@pytest.mark.kubernetes("1.35")
def test_the_columns_of_every_kind_are_described_as_the_original_does():
    rows = {f"{row.group}/{row.version}/{row.plural}": row for row in (*rows_of("1.35"), SCALES)}
    found = {name: [row_of(column) for column in columns(rows[name])] for name in RECORDED}
    assert found == RECORDED


@settings(max_examples=150, deadline=None)
@given(OBJECTS)
@pytest.mark.slow
def test_whatever_the_schema_allows_can_be_printed(pair):
    """One cell per column, whatever is missing."""
    resource, obj = pair
    row = cells(resource, obj, NOW)
    assert len(row) == cells_of(resource)


@pytest.mark.parametrize(
    "resource", rows_of(), ids=lambda row: f"{row.group_resource}.{row.version}"
)
def test_an_empty_object_can_be_printed(resource):
    assert len(cells(resource, {}, NOW)) == cells_of(resource)


def test_a_table_carries_metadata_unless_asked_otherwise():
    """[A7] Table and PartialObjectMetadata forms."""
    obj = {
        "metadata": {"name": "a", "creationTimestamp": "2023-11-14T22:13:15Z"},
        "data": {"x": "y"},
    }
    table = table_of(CONFIG_MAPS, [obj], NOW, TableForm(), {"resourceVersion": "7"})
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"] == {"resourceVersion": "7"}
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    (row,) = table["rows"]
    assert row["cells"] == ["a", 1, "5s"]
    assert row["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
    assert table_of(CONFIG_MAPS, [obj], NOW, TableForm("Object"))["rows"][0]["object"] is obj
    assert table_of(CONFIG_MAPS, [obj], NOW, TableForm("None"))["rows"][0]["object"] is None
    assert (
        table_of(CONFIG_MAPS, [obj], NOW, TableForm(with_columns=False))["columnDefinitions"] == []
    )
    with pytest.raises(BadRequest, match="unrecognized includeObject value"):
        table_of(CONFIG_MAPS, [obj], NOW, TableForm("Everything"))


def test_kinds_without_columns_say_when_they_were_made():
    obj = {"metadata": {"name": "a", "creationTimestamp": "2023-11-14T22:13:15Z"}}
    for resource in (
        by_plural("rbac.authorization.k8s.io", "v1", "roles"),
        Resource("example.com", "v1", "Widget", "widgets"),
    ):
        assert [one["name"] for one in columns(resource)] == ["Name", "Created At"]
        assert cells(resource, obj, NOW) == ["a", "2023-11-14T22:13:15Z"]


def test_finished_pods_have_marked_rows():
    table = table_of(PODS, [{"status": {"phase": "Succeeded"}}, {}], NOW, TableForm())
    assert table["rows"][0]["conditions"][0]["type"] == "Completed"
    assert "conditions" not in table["rows"][1]


def test_wide_columns_have_priority_one():
    wide = [one["name"] for one in columns(PODS) if one["priority"]]
    assert wide == ["IP", "Node", "Nominated Node", "Readiness Gates"]
