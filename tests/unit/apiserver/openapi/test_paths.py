"""Operations from the table of resources."""

from sampan.api.resources import LEASES, NODES, PODS, RESOURCES
from sampan.apiserver.openapi.paths import operations, parameter_type


def found(*rows):
    return {(one.method, one.path): one for one in operations(rows)}


def test_a_namespaced_resource_has_both_kinds_of_list():
    ops = found(LEASES)
    base = "/apis/coordination.k8s.io/v1"
    assert {key for key in ops if key[0] == "get"} == {
        ("get", f"{base}/leases"),
        ("get", f"{base}/namespaces/{{namespace}}/leases"),
        ("get", f"{base}/namespaces/{{namespace}}/leases/{{name}}"),
    }
    listed = ops["get", f"{base}/namespaces/{{namespace}}/leases"]
    assert listed.operation_id == "listCoordinationV1NamespacedLease"
    assert listed.gives == "coordination.k8s.io/v1 LeaseList"
    assert "watch" in listed.query


def test_cluster_resources_have_no_namespace():
    assert not [path for _, path in found(NODES) if "{namespace}" in path]


def test_subresources_take_and_give_their_own_kinds():
    ops = found(PODS)
    one = "/api/v1/namespaces/{namespace}/pods/{name}"
    assert ops["post", f"{one}/eviction"].takes == "policy/v1 Eviction"
    assert ops["post", f"{one}/binding"].kind["kind"] == "Binding"
    assert ops["get", f"{one}/exec"].action == "connect"
    assert ops["get", f"{one}/log"].gives == ""
    assert ops["patch", f"{one}/status"].consumes[0] == "application/json-patch+json"
    assert ops["delete", one].takes == "v1 DeleteOptions"


def test_every_operation_has_an_id_of_its_own():
    ids = [one.operation_id for one in operations(RESOURCES)]
    assert len(ids) == len(set(ids))


def test_parameters_have_types():
    assert parameter_type("limit") == "integer"
    assert parameter_type("watch") == "boolean"
    assert parameter_type("labelSelector") == "string"
