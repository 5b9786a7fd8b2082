"""Path items of both versions, beside those that an original v1.35.8 publishes."""

import hashlib
import json
from pathlib import Path

import orjson
import pytest

from sampan.api.resources import CONFIG_MAPS, LEASES
from sampan.api.schema.published import Schema
from sampan.api.served import served_resources
from sampan.apiserver.extension import definition_rows
from sampan.apiserver.openapi.endpoints import OpenApi
from sampan.apiserver.openapi.path_items import paths_v2, paths_v3
from sampan.apiserver.openapi.paths import operations

pytestmark = pytest.mark.kubernetes("1.35")
SCHEMA = Schema.load("1.35")
# path → digests of its item in versions 2 and 3, without the texts of query and path parameters,
# which are not among the published definitions.
RECORDED = json.loads(Path(__file__).with_name("paths_v1.35_recorded.json").read_text())


def name_of(text):
    return text.rpartition(" ")[2]


def untold(value, shared):
    """With shared parameters in place, and without their texts."""
    if isinstance(value, list):
        return [untold(item, shared) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("$ref", "").startswith("#/parameters/"):
        value = shared[value["$ref"].removeprefix("#/parameters/")]
    is_parameter = value.get("in") in ("query", "path")
    return {
        key: untold(item, shared)
        for key, item in value.items()
        if not (is_parameter and key == "description")
    }


def digest(item, shared):
    text = json.dumps(untold(item, shared), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def body_of(packed):
    return orjson.loads(packed.body())


def custom_rows():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    for plural, kind, scope, parts in (
        ("gadgets", "Gadget", "Namespaced", {"status": {}, "scale": scale}),
        ("worlds", "World", "Cluster", {}),
    ):
        names = {
            "plural": plural,
            "singular": kind.lower(),
            "kind": kind,
            "listKind": f"{kind}List",
        }
        version = {"name": "v1", "served": True, "storage": True, "subresources": parts,
                   "schema": {"openAPIV3Schema": schema}}  # fmt: skip
        definition = {
            "metadata": {"name": f"{plural}.example.org"},
            "spec": {"group": "example.org", "scope": scope, "names": names, "versions": [version]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        }
        yield from definition_rows.rows_of(definition, SCHEMA)


@pytest.mark.slow
def test_paths_are_those_that_the_original_publishes():
    """[A5] Every path of both versions: operations, parameters, media types, answers."""
    built_in = [row for row in served_resources() if row.group != "metrics.k8s.io"]
    api = OpenApi(SCHEMA, [*built_in, *custom_rows()])
    old = body_of(api.v2())
    new = {
        path: item
        for name in body_of(api.index())["paths"]
        for path, item in body_of(api.v3(name))["paths"].items()
    }
    assert set(old["paths"]) == set(new)
    found = {
        path: f"{digest(old['paths'][path], old['parameters'])} {digest(new[path], {})}"
        for path in new
    }
    assert found == RECORDED


def test_the_document_of_a_custom_group_says_that_it_is_one():
    document = body_of(OpenApi(SCHEMA, custom_rows()).v3("apis/example.org/v1"))
    assert document["info"]["title"] == "Kubernetes CRD Swagger"
    assert "securitySchemes" not in document["components"]


def test_what_all_operations_of_a_path_take_is_said_once():
    paths, names = paths_v3(operations([LEASES], {}), name_of)
    item = paths["/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"]
    assert [one["name"] for one in item["parameters"]] == ["name", "namespace", "pretty"]
    assert "parameters" not in item["get"]
    assert item["patch"]["parameters"][-1]["name"] == "force"
    assert {"Lease", "LeaseList", "Status", "WatchEvent", "DeleteOptions", "Patch"} == names


def test_shared_parameters_are_named_by_their_content():
    paths, _, shared = paths_v2(operations([LEASES, CONFIG_MAPS], {}), name_of)
    (limit,) = [name for name in shared if name.startswith("limit-")]
    listed = paths["/api/v1/namespaces/{namespace}/configmaps"]["get"]
    assert {"$ref": f"#/parameters/{limit}"} in listed["parameters"]
    assert not [name for name in shared if name.startswith(("dryRun", "name-", "fieldValidation"))]


def test_a_shared_parameter_with_the_originals_text_has_its_name():
    texts = SCHEMA.explanations()["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"][1]
    _, _, shared = paths_v2(operations([CONFIG_MAPS], texts), name_of)
    assert {"orphanDependents-uRB25kX5", "propagationPolicy-6jk3prlO"} <= set(shared)
