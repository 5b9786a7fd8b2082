import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.errors import ApiError, BadRequest, MethodNotAllowed, UnknownGroup, UnknownPath
from sampan.apiserver.http.request import NotRouted, is_watch, request_info


@pytest.mark.parametrize(
    ("method", "path", "watch", "expected"),
    [
        ("GET", "/api/v1/pods", False, ("list", "pods", "", "", "")),
        ("GET", "/api/v1/pods", True, ("watch", "pods", "", "", "")),
        ("GET", "/api/v1/namespaces/a/pods", False, ("list", "pods", "a", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/x", False, ("get", "pods", "a", "x", "")),
        ("GET", "/api/v1/namespaces/a/pods/x", True, ("get", "pods", "a", "x", "")),
        ("GET", "/api/v1/watch/pods", False, ("watch", "pods", "", "", "")),
        ("GET", "/api/v1/watch/namespaces/a/pods/x", False, ("watch", "pods", "a", "x", "")),
        ("GET", "/api/v1/watch/namespaces/a", False, ("watch", "namespaces", "", "a", "")),
        ("GET", "/api/v1/namespaces/a", False, ("get", "namespaces", "", "a", "")),
        ("GET", "/api/v1/namespaces/a/pods/x/log", False, ("get", "pods", "a", "x", "log")),
        ("POST", "/api/v1/namespaces/a/pods", False, ("create", "pods", "a", "", "")),
        (
            "POST", "/api/v1/namespaces/a/pods/x/binding", False,
            ("create", "pods", "a", "x", "binding"),
        ),
        ("PUT", "/api/v1/namespaces/a", False, ("update", "namespaces", "", "a", "")),
        ("GET", "/api/v1/namespaces", False, ("list", "namespaces", "", "", "")),
        (
            "PUT", "/api/v1/namespaces/a/finalize", False,
            ("update", "namespaces", "", "a", "finalize"),
        ),
        (
            "PATCH", "/apis/apps/v1/namespaces/a/deployments/d/scale", False,
            ("patch", "deployments", "a", "d", "scale"),
        ),
        ("DELETE", "/api/v1/nodes/n", False, ("delete", "nodes", "", "n", "")),
        ("DELETE", "/api/v1/nodes", False, ("deletecollection", "nodes", "", "", "")),
        ("GET", "/api/v1/pods/", False, ("list", "pods", "", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/x%2Dy", False, ("get", "pods", "a", "x-y", "")),
    ],
)  # fmt: skip
def test_a_path_says_what_is_asked(method, path, watch, expected):
    info = request_info(method, path, watch)
    found = (info.verb, info.resource.plural, info.namespace, info.name, info.subresource)
    assert found == expected


@pytest.mark.parametrize("path", ["/version", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1"])
def test_paths_outside_the_resources_have_no_resource(path):
    assert request_info("GET", path, False).resource is None


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1//pods", "/api/v1/namespaces//pods", "/api/v1/namespaces/../pods",
        "/api/v1/namespaces/a/pods/..", "/api/v1/namespaces/a/pods/%2e%2e", "/api/v1/foos",
        "/apis/apps/v9/deployments", "/api/v1/pods/x", "/api/v1/namespaces/a/nodes",
        "/api/v1/namespaces/a/pods/x/nope", "/api/v1/namespaces/a/pods/x/log/more",
        "/api/v1/watch/foos", "/api/v1/watch/namespaces/a/pods/x/log",
    ],
)  # fmt: skip
def test_tricky_and_unknown_paths_are_not_found(path):
    assert type(refusal("GET", path)) is UnknownPath


@pytest.mark.parametrize("path", ["/apis/nope/v1/things", "/apis/nope/v1/namespaces/a/things/b"])
def test_a_group_that_nobody_serves_is_told_from_one_that_lacks_something(path):
    assert type(refusal("GET", path)) is UnknownGroup


def test_what_is_not_served_is_named_all_the_same():
    """Who may not ask for it is told that."""
    with pytest.raises(NotRouted) as caught:
        request_info("POST", "/apis/nope.example/v1/namespaces/n/things/t/sub", False)
    info = caught.value.info
    assert info.resource is not None
    named = (info.verb, info.resource.group, info.resource.plural, info.namespace, info.name)
    assert (*named, info.subresource) == ("create", "nope.example", "things", "n", "t", "sub")


def refusal(method, path):
    with pytest.raises(NotRouted) as caught:
        request_info(method, path, False)
    return caught.value.error


def test_an_encoded_slash_is_never_a_slash():
    with pytest.raises(BadRequest):
        request_info("GET", "/api/v1/namespaces/a/pods/x%2Flog", False)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/namespaces/a/pods/x"), ("PUT", "/api/v1/namespaces/a/pods"),
        ("POST", "/api/v1/pods"), ("DELETE", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/pods"), ("HEAD", "/api/v1/pods"), ("POST", "/api/v1/watch/pods"),
        ("DELETE", "/api/v1/namespaces/a/pods/x/status"), ("TRACE", "/api/v1/pods"),
        ("GET", "/api/v1/namespaces/a/bindings"),
    ],
)  # fmt: skip
def test_methods_in_the_wrong_place_are_not_allowed(method, path):
    assert isinstance(refusal(method, path), MethodNotAllowed)


@given(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]), st.text(max_size=60))
def test_no_path_breaks_the_server(method, rest):
    try:
        info = request_info(method, "/api/v1/" + rest, False)
    except (ApiError, NotRouted, UnicodeDecodeError):
        return
    assert info.resource is None or ".." not in (info.namespace, info.name)


def test_watch_is_what_is_not_false():
    assert is_watch("watch=true")
    assert is_watch("a=b&watch=1")
    assert not is_watch("watch=false")
    assert not is_watch("watch=0")
    assert not is_watch("labelSelector=watch")


def test_every_method_goes_through_a_proxy():
    """[A9] OPTIONS has no verb, as upstream."""
    path = "/api/v1/namespaces/default/pods/web/proxy/x"
    verbs = {method: request_info(method, path, False).verb for method in _METHODS}
    assert verbs == dict(
        zip(_METHODS, ("get", "get", "create", "update", "patch", "delete", ""), strict=True)
    )
    for place in ("web", "web/log"):
        path = f"/api/v1/namespaces/default/pods/{place}"
        assert isinstance(refusal("OPTIONS", path), MethodNotAllowed)


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
