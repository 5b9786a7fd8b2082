"""apiserver/openapi/merging.py: another server's document never spoils ours."""

import copy

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.apiserver.openapi.merging import with_foreign_v2
from sampan.apiserver.openapi.protobuf import encode

OWN = {
    "swagger": "2.0",
    "info": {"title": "t", "version": "v"},
    "paths": {"/api/": {}},
    "definitions": {"Meta": {"type": "object"}, "Pod": {"type": "object"}},
}
PREFIX = "/apis/tea.example/v1"


def refers(name):
    schema = {"$ref": f"#/definitions/{name}"}
    return {"get": {"responses": {"200": {"description": "OK", "schema": schema}}}}


def merged(paths, definitions):
    body = orjson.dumps({"paths": paths, "definitions": definitions})
    return with_foreign_v2(OWN, body, PREFIX)


def test_only_the_group_version_and_what_it_needs_is_taken():
    tea = {"properties": {"meta": {"$ref": "#/definitions/Meta"}}}
    out = merged(
        {f"{PREFIX}/teas": refers("Tea"), "/apis/tea.example/v10/x": {}, "/api/": {"get": {}}},
        {"Tea": tea, "Meta": {"type": "object"}, "Unused": {}},
    )
    assert set(out["paths"]) == {"/api/", f"{PREFIX}/teas"}
    assert out["paths"]["/api/"] == {}
    assert out["definitions"] == {**OWN["definitions"], "Tea": tea}


def test_a_definition_of_the_same_name_gets_another_one():
    tea = {"properties": {"meta": {"$ref": "#/definitions/Meta"}}}
    out = merged({f"{PREFIX}/teas": refers("Tea")}, {"Tea": tea, "Meta": {"type": "string"}})
    assert out["definitions"]["Meta"] == {"type": "object"}
    assert out["definitions"]["Meta_v2"] == {"type": "string"}
    assert out["definitions"]["Tea"]["properties"]["meta"] == {"$ref": "#/definitions/Meta_v2"}


def test_parameters_that_their_document_shares_are_put_in_place():
    limit = {"name": "limit", "in": "query", "type": "integer"}
    item = {"parameters": [{"$ref": "#/parameters/limit-x"}], **refers("Tea")}
    body = {"paths": {f"{PREFIX}/teas": item}, "definitions": {"Tea": {}},
            "parameters": {"limit-x": limit}}  # fmt: skip
    out = with_foreign_v2(OWN, orjson.dumps(body), PREFIX)
    assert out["paths"][f"{PREFIX}/teas"]["parameters"] == [limit]


@pytest.mark.parametrize(
    "body",
    [b"", b"no", b"[]", b"{}", b'{"paths":[]}', b'{"paths":{"/apis/tea.example/v1/x":{"get":1}}}',
     orjson.dumps({"paths": {f"{PREFIX}/x": refers("Missing")}}), b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_document_is_left_out(body):
    assert with_foreign_v2(OWN, body, PREFIX) == OWN


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["a", "#/definitions/A", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$ref", "properties", "type", "items", "get", "parameters", "x-a"]),
            inner,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=40)
@given(JSON, JSON)
def test_the_result_can_always_be_written_and_ours_is_untouched(item, definition):
    before = copy.deepcopy(OWN)
    out = merged({f"{PREFIX}/x": item}, {"A": definition, "Meta": definition})
    assert before == OWN
    assert out["definitions"]["Meta"] == {"type": "object"}
    encode(out)
    orjson.dumps(out)
