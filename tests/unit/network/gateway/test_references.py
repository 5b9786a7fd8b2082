"""References to other namespaces."""

from sampan.network.gateway.references import Reference, is_permitted

ROUTE = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "web"}
ACROSS = Reference("HTTPRoute", "web", "Service", "back", "api")


def grant(*to, namespace="back", **source):
    return {
        "metadata": {"name": "g", "namespace": namespace},
        "spec": {"from": [{**ROUTE, **source}], "to": list(to)},
    }


def test_the_own_namespace_needs_no_grant():
    assert is_permitted(Reference("HTTPRoute", "web", "Service", "web", "api"), [])
    assert not is_permitted(ACROSS, [])


def test_a_grant_is_for_a_kind_or_for_one_name():
    assert is_permitted(ACROSS, [grant({"group": "", "kind": "Service"})])
    assert is_permitted(ACROSS, [grant({"group": "", "kind": "Service", "name": "api"})])
    assert not is_permitted(ACROSS, [grant({"group": "", "kind": "Service", "name": "other"})])
    assert not is_permitted(ACROSS, [grant({"group": "", "kind": "Secret"})])
    assert not is_permitted(ACROSS, [grant({"group": "x.io", "kind": "Service"})])


def test_a_grant_says_from_whom_and_is_of_its_namespace():
    service = {"group": "", "kind": "Service"}
    assert not is_permitted(ACROSS, [grant(service, namespace="web")])
    assert not is_permitted(ACROSS, [grant(service, kind="Gateway")])
    assert not is_permitted(ACROSS, [grant(service, group="")])
