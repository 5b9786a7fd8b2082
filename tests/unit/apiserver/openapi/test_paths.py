"""Operations from the table of resources."""

from sampan.api.resources import LEASES, NODES, PODS, RESOURCES
from sampan.apiserver.openapi.paths import operations, with_article

TEXTS = {"dryRun": "Nothing is kept."}


def found(*rows):
    return {(one.method, one.path): one for one in operations(rows, TEXTS)}


def test_a_namespaced_resource_has_both_kinds_of_list():
    ops = found(LEASES)
    base = "/apis/coordination.k8s.io/v1"
    assert {key for key in ops if key[0] == "get"} == {
        ("get", f"{base}/leases"),
        ("get", f"{base}/namespaces/{{namespace}}/leases"),
        ("get", f"{base}/namespaces/{{namespace}}/leases/{{name}}"),
        ("get", f"{base}/watch/leases"),
        ("get", f"{base}/watch/namespaces/{{namespace}}/leases"),
        ("get", f"{base}/watch/namespaces/{{namespace}}/leases/{{name}}"),
    }
    listed = ops["get", f"{base}/namespaces/{{namespace}}/leases"]
    assert listed.operation_id == "listCoordinationV1NamespacedLease"
    assert listed.gives == "coordination.k8s.io/v1 LeaseList"
    assert "watch" in {one.name for one in listed.parameters}


def test_cluster_resources_have_no_namespace():
    assert not [path for _, path in found(NODES) if "{namespace}" in path]


def test_subresources_take_and_give_their_own_kinds():
    ops = found(PODS)
    one = "/api/v1/namespaces/{namespace}/pods/{name}"
    assert ops["post", f"{one}/eviction"].takes == "policy/v1 Eviction"
    assert ops["post", f"{one}/binding"].kind["kind"] == "Binding"
    assert ops["get", f"{one}/exec"].action == "connect"
    assert ops["get", f"{one}/log"].gives == "text"
    assert ops["head", f"{one}/proxy/{{path}}"].operation_id.endswith("PodProxyWithPath")
    assert ops["patch", f"{one}/status"].consumes[0] == "application/json-patch+json"
    assert ops["delete", one].takes == "v1 DeleteOptions"


def test_every_operation_has_an_id_of_its_own():
    ids = [one.operation_id for one in operations(RESOURCES, TEXTS)]
    assert len(ids) == len(set(ids))


def test_parameters_have_types_and_the_published_texts():
    listed = found(LEASES)["get", "/apis/coordination.k8s.io/v1/leases"]
    types = {one.name: one.type for one in listed.parameters}
    assert (types["limit"], types["watch"], types["labelSelector"]) == (
        "integer", "boolean", "string"
    )  # fmt: skip
    created = found(LEASES)["post", "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"]
    assert {one.description for one in created.parameters} == {"", "Nothing is kept."}


def test_articles_are_the_originals():
    assert [with_article(kind) for kind in ("Pod", "Ingress", "Endpoints")] == [
        "a Pod", "an Ingress", "Endpoints"
    ]  # fmt: skip
