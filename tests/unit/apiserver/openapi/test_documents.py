"""Documents of both versions."""

import hashlib
import json
import re
from pathlib import Path

import orjson
import pytest

from sampan.api.resources import DEPLOYMENTS, PODS
from sampan.api.schema.published import Schema
from sampan.apiserver.openapi.documents import document_v2, document_v3
from tests.support.releases import rows_of

SCHEMA = Schema.load()
PROSE = {"io.k8s.api.core.v1.Pod": ["A pod.", {"spec": "What it wants."}]}
V2 = document_v2(SCHEMA, [PODS, DEPLOYMENTS], PROSE)
V3 = document_v3(SCHEMA, [PODS], PROSE)
# Digests of the schemas that v1.35.8 publishes: package → name → digest.
RECORDED = json.loads(Path(__file__).with_name("schemas_v3_recorded.json").read_text())
NO_WORDS = {"Quantity", "IntOrString"}  # what they mean is not among the published texts


@pytest.mark.parametrize(
    ("document", "prefix", "defined"),
    [
        (V2, "#/definitions/", V2["definitions"]),
        (V3, "#/components/schemas/", V3["components"]["schemas"]),
    ],
    ids=["v2", "v3"],
)
def test_every_reference_is_defined(document, prefix, defined):
    """[A5]"""
    text = orjson.dumps(document).decode()
    wanted = {one.removeprefix(prefix) for one in re.findall(r'"\$ref":"([^"]*)"', text)}
    shared = {f"#/parameters/{name}" for name in document.get("parameters", ())}
    assert wanted <= {*defined, *shared}
    assert "io.k8s.api.core.v1.PodList" in defined


def test_a_kind_is_found_by_its_group_version_kind():
    pod = V3["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert pod["description"] == "A pod."
    assert pod["properties"]["spec"] == {
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}],
        "default": {},
        "description": "What it wants.",
    }
    assert V2["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]["spec"] == {
        "$ref": "#/definitions/io.k8s.api.core.v1.PodSpec",
        "description": "What it wants.",
    }


def test_lists_say_how_they_merge():
    spec = V3["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]
    containers = spec["properties"]["containers"]
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert spec["required"] == ["containers"]


def test_types_that_decode_themselves_are_published_in_each_versions_way():
    quantity, number = "io.k8s.apimachinery.pkg.api.resource.Quantity", "int-or-string"
    assert V2["definitions"][quantity] == {"type": "string"}
    assert "oneOf" in V3["components"]["schemas"][quantity]
    either = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
    assert V2["definitions"][either] == {"type": "string", "format": number}


def test_patches_name_their_kind_and_their_parameters():
    path = "/api/v1/namespaces/{namespace}/pods/{name}"
    patch = V3["paths"][path]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    names = {one["name"] for one in patch["parameters"]}
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= names
    shared = [one["name"] for one in V3["paths"][path]["parameters"]]
    assert shared == ["name", "namespace", "pretty"]
    older = V2["paths"][path]["patch"]
    asked = {"name": "dryRun", "in": "query", "type": "string", "uniqueItems": True}
    assert asked in older["parameters"]


def digest(schema):
    """Of a definition without its closed sets of values, which the published files leave out."""
    return hashlib.sha256(json.dumps(_open(schema), sort_keys=True).encode()).hexdigest()[:8]


def _open(part):
    out = {key: value for key, value in part.items() if key != "enum"}
    if "enum" in part and "description" in part:
        out["description"] = part["description"].partition("\n\nPossible enum values:")[0]
    if "properties" in out:
        out["properties"] = {name: _open(prop) for name, prop in out["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in out:
            out[key] = _open(out[key])
    return out


@pytest.mark.kubernetes("1.35")
def test_schemas_are_those_that_the_original_publishes():
    """Types, defaults, words and references, of everything that is served."""
    schema = Schema.load()
    schemas = document_v3(schema, rows_of("1.35"), schema.explanations())["components"]["schemas"]
    found: dict[str, dict[str, str]] = {}
    for name, schema in schemas.items():
        package, _, short = name.rpartition(".")
        if short not in NO_WORDS:
            found.setdefault(package, {})[short] = digest(schema)
    wanted = {
        package: {name: RECORDED.get(package, {}).get(name) for name in names}
        for package, names in found.items()
    }
    assert found == wanted
    assert sum(map(len, found.values())) > 500


def test_closed_sets_of_values_are_in_both_versions():
    for definitions in (V2["definitions"], V3["components"]["schemas"]):
        spec = definitions["io.k8s.api.core.v1.PodSpec"]["properties"]
        assert spec["restartPolicy"]["enum"] == ["Always", "Never", "OnFailure"]
        listed = ' - `"Always"`\n - `"Never"`\n - `"OnFailure"`'
        assert spec["restartPolicy"]["description"].endswith(f"Possible enum values:\n{listed}")
        claim = definitions["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]
        assert "ReadWriteOnce" in claim["accessModes"]["items"]["enum"]
