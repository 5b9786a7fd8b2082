"""Discovery documents."""

import orjson
import pytest

from sampan.api.resources import RESOURCES, Resource
from sampan.apiserver.http.discovery import Discovery, version_rank, wanted_form
from sampan.apiserver.http.negotiate import PROTOBUF
from sampan.core.http.written_forms import JSON

DISCOVERY = Discovery(RESOURCES, server_address="10.0.0.1:6443")
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
KUBECTL = f"{V2},{BETA},application/json"


def told(path, accept="", discovery=DISCOVERY):
    return orjson.loads(discovery.document(path, accept).body)


def test_the_legacy_forms():
    """[A5] [C3]"""
    assert told("/api")["versions"] == ["v1"]
    groups = told("/apis")["groups"]
    assert [one["name"] for one in groups][:4] == [
        "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io",
    ]  # fmt: skip
    autoscaling = told("/apis/autoscaling")
    assert autoscaling["preferredVersion"] == {"groupVersion": "autoscaling/v2", "version": "v2"}
    assert [one["version"] for one in autoscaling["versions"]] == ["v2", "v1"]
    assert DISCOVERY.document("/apis/nothing") is None
    assert DISCOVERY.document("/apis/apps/v2") is None
    assert DISCOVERY.document("/api/v2") is None


def test_what_is_stored_says_in_which_version():
    """the same bytes as the original's"""
    core = {one["name"]: one.get("storageVersionHash") for one in told("/api/v1")["resources"]}
    assert core["pods"] == "xPOwRZ+Yhw8="
    assert core["services"] == "0/CO1lhkEBI="
    assert core["configmaps"] == "qFsyl6wFWjQ="
    assert core["pods/status"] is core["bindings"] is core["componentstatuses"] is None
    events = told("/apis/events.k8s.io/v1")["resources"][0]
    assert events["storageVersionHash"] == core["events"] == "r2yiGXH7wu8="
    one, two = (told(f"/apis/autoscaling/{version}")["resources"][0] for version in ("v1", "v2"))
    assert one["storageVersionHash"] == two["storageVersionHash"]


def test_resources_and_subresources_of_a_version():
    core = told("/api/v1")
    assert core["groupVersion"] == "v1"
    by_name = {one["name"]: one for one in core["resources"]}
    assert list(by_name) == sorted(by_name)
    assert by_name["pods"] == {
        "name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update",
                  "watch"],
        "shortNames": ["po"], "categories": ["all"], "storageVersionHash": "xPOwRZ+Yhw8=",
    }  # fmt: skip
    assert by_name["pods/eviction"] == {
        "name": "pods/eviction", "singularName": "", "namespaced": True, "group": "policy",
        "version": "v1", "kind": "Eviction", "verbs": ["create"],
    }  # fmt: skip
    assert by_name["pods/status"]["kind"] == "Pod"
    assert "group" not in by_name["pods/binding"]


def test_the_aggregated_form_says_group_and_version_where_they_are_others():
    """As v1.35.8: a Deployment is of its list's group version, its scale is not."""
    groups = {one["metadata"]["name"]: one for one in told("/apis", V2)["items"]}
    assert groups["apps"]["metadata"] == {"name": "apps"}
    [rows] = [version["resources"] for version in groups["apps"]["versions"]]
    [row] = [row for row in rows if row["resource"] == "deployments"]
    assert row["responseKind"] == {"group": "", "version": "", "kind": "Deployment"}
    assert {sub["subresource"]: sub["responseKind"] for sub in row["subresources"]} == {
        "scale": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "status": {"group": "", "version": "", "kind": "Deployment"},
    }
    assert "apiVersion" not in told("/api/v1")
    assert told("/apis/apps/v1")["apiVersion"] == "v1"


def test_definitions_are_hashed_by_the_version_that_they_began_with():
    rows = told("/apis/apiextensions.k8s.io/v1")["resources"]
    assert rows[0]["storageVersionHash"] == "jfWCUB31mvA="


def test_the_aggregated_form_holds_everything_in_two_answers():
    core = told("/api", KUBECTL)
    assert (core["kind"], core["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    assert [one["metadata"].get("name") for one in core["items"]] == [None]
    groups = told("/apis", KUBECTL)["items"]
    rows = [
        (group["metadata"]["name"], version["version"], one["resource"])
        for group in groups
        for version in group["versions"]
        for one in version["resources"]
    ]
    wanted = [(row.group, row.version, row.plural) for row in RESOURCES if row.group]
    assert sorted(rows) == sorted(wanted)
    assert DISCOVERY.document("/apis", KUBECTL).content_type == V2
    assert DISCOVERY.document("/apis").content_type == "application/json"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (KUBECTL, (JSON, "v2")), (BETA, ("", "")), ("", (JSON, "")),
        (JSON, (JSON, "")), ("*/*", (JSON, "")), (f"{JSON},{V2}", (JSON, "")),
        (f"{PROTOBUF},{BETA}", (PROTOBUF, "")), (V2.replace("v=v2", "v=v3"), ("", "")),
        (PROTOBUF, (PROTOBUF, "")), (V2.replace(JSON, PROTOBUF), (PROTOBUF, "v2")),
        (f"{V2.replace(JSON, PROTOBUF)},{PROTOBUF}", (PROTOBUF, "v2")),
    ],
)  # fmt: skip
def test_the_form_is_negotiated(accept, form):
    assert wanted_form(accept) == form


def test_the_etag_follows_the_content():
    first = DISCOVERY.document("/apis", V2)
    assert first is DISCOVERY.document("/apis", V2)
    assert first.etag == Discovery(RESOURCES).document("/apis", V2).etag
    more = Resource("example.com", "v1", "Widget", "widgets")
    grown = Discovery([*RESOURCES, more])
    assert grown.document("/apis", V2).etag != first.etag
    assert told("/apis/example.com/v1", discovery=grown)["resources"][0]["kind"] == "Widget"


def test_groups_of_other_servers_are_listed_too():
    elsewhere = {("metrics.k8s.io", "v1"): [{"resource": "nodes"}], ("apps", "v9"): None}
    grown = Discovery(RESOURCES, elsewhere=elsewhere)
    assert told("/apis", discovery=grown)["groups"][-1]["name"] == "metrics.k8s.io"
    apps = next(
        item
        for item in told("/apis", V2, discovery=grown)["items"]
        if item["metadata"]["name"] == "apps"
    )
    assert [(item["version"], item["freshness"]) for item in apps["versions"]] == [
        ("v9", "Stale"),
        ("v1", "Current"),
    ]
    assert "resources" not in apps["versions"][0]


def test_groups_and_versions_stand_in_the_order_of_their_priorities():
    priorities = {
        ("apps", "v1"): (10, 1),
        ("apps", "v9"): (20, 0),
        ("batch", "v1"): (20, 1),
        ("a.example", "v1"): (20, 1),
    }
    elsewhere = {("apps", "v9"): [], ("a.example", "v1"): []}
    grown = Discovery(RESOURCES, elsewhere=elsewhere, priorities=priorities)
    groups = told("/apis", discovery=grown)["groups"]
    assert [item["name"] for item in groups[:4]] == [
        "apiregistration.k8s.io", "a.example", "apps", "batch",
    ]  # fmt: skip
    assert groups[2]["preferredVersion"]["version"] == "v1"


def test_versions_sort_as_kubernetes_prefers_them():
    versions = ["v1alpha1", "foo", "v2", "v1beta2", "v1", "v1beta10", "v11beta2"]
    assert sorted(versions, key=version_rank, reverse=True) == [
        "v2", "v1", "v11beta2", "v1beta10", "v1beta2", "v1alpha1", "foo",
    ]  # fmt: skip
