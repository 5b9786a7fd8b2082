import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.calls import DEFAULT_OPTIONS, Options
from sampan.api.errors import ApiError, BadRequest, Invalid, MethodNotAllowed, UnknownPath
from sampan.apiserver.http.request import (
    is_watch,
    options_of,
    request_info,
)


@pytest.mark.parametrize(
    ("method", "path", "watch", "expected"),
    [
        ("GET", "/api/v1/pods", False, ("list", "pods", "", "", "")),
        ("GET", "/api/v1/pods", True, ("watch", "pods", "", "", "")),
        ("GET", "/api/v1/namespaces/a/pods", False, ("list", "pods", "a", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/x", False, ("get", "pods", "a", "x", "")),
        ("HEAD", "/api/v1/namespaces/a/pods/x", False, ("get", "pods", "a", "x", "")),
        ("GET", "/api/v1/namespaces/a/pods/x", True, ("watch", "pods", "a", "x", "")),
        ("GET", "/api/v1/watch/pods", False, ("watch", "pods", "", "", "")),
        ("GET", "/api/v1/watch/namespaces/a/pods/x", False, ("watch", "pods", "a", "x", "")),
        ("GET", "/api/v1/watch/namespaces/a", False, ("watch", "namespaces", "", "a", "")),
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
        "/api/v1/watch", "/api/v1/watch/foos", "/api/v1/watch/namespaces/a/pods/x/status",
    ],
)  # fmt: skip
def test_tricky_and_unknown_paths_are_not_found(path):
    with pytest.raises(UnknownPath, match="could not find the requested resource"):
        request_info("GET", path, False)


def test_an_encoded_slash_is_never_a_slash():
    with pytest.raises(BadRequest):
        request_info("GET", "/api/v1/namespaces/a/pods/x%2Flog", False)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/namespaces/a/pods/x"), ("PUT", "/api/v1/namespaces/a/pods"),
        ("POST", "/api/v1/pods"), ("DELETE", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/namespaces/a/pods/x/status"), ("TRACE", "/api/v1/pods"),
        ("GET", "/api/v1/namespaces/a/bindings"), ("POST", "/api/v1/watch/pods"),
    ],
)  # fmt: skip
def test_methods_in_the_wrong_place_are_not_allowed(method, path):
    with pytest.raises(MethodNotAllowed):
        request_info(method, path, False)


@given(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]), st.text(max_size=60))
def test_no_path_breaks_the_server(method, rest):
    try:
        info = request_info(method, "/api/v1/" + rest, False)
    except (ApiError, UnicodeDecodeError):
        return
    assert info.resource is None or ".." not in (info.namespace, info.name)


def test_a_query_becomes_options():
    assert options_of("", "list") is DEFAULT_OPTIONS
    found = options_of(
        "labelSelector=a%3Db&limit=5&resourceVersion=0&watch=1&allowWatchBookmarks=true"
        "&timeoutSeconds=9&fieldManager=me&dryRun=All&fieldValidation=Strict",
        "list",
    )
    assert found == Options(
        label_selector="a=b", limit=5, resource_version="0", allow_bookmarks=True,
        timeout_seconds=9, field_manager="me", dry_run=True, field_validation="Strict",
    )  # fmt: skip
    assert options_of("orphanDependents=true", "delete").propagation == "Orphan"
    assert options_of("gracePeriodSeconds=0", "delete").grace_seconds == 0


@pytest.mark.parametrize(
    ("verb", "query", "message"),
    [
        ("create", "dryRun=yes", 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported'),
        ("update", "fieldValidation=Maybe", "UpdateOptions.* fieldValidation: Unsupported value"),
        ("patch", "dryRun=no", "PatchOptions.* dryRun: Unsupported value"),
        ("delete", "propagationPolicy=Later", "DeleteOptions.* propagationPolicy: Unsupported"),
        ("create", "fieldManager=" + "x" * 129, "fieldManager: Too long"),
        ("update", "fieldManager=a%07", r"fieldManager: .* invalid character U\+0007 .*position 1"),
    ],
)
def test_wrong_words_in_a_query_are_invalid(verb, query, message):
    """[A7] named after the options of the verb"""
    with pytest.raises(Invalid, match=message):
        options_of(query, verb)


def test_what_a_verb_has_no_use_for_is_not_looked_at():
    assert options_of("dryRun=yes&fieldValidation=Maybe&propagationPolicy=Later", "list").limit == 0
    assert options_of("fieldValidation=Maybe&fieldManager=%07", "delete").grace_seconds is None
    assert options_of("propagationPolicy=Later", "update").field_validation == "Warn"


def test_a_limit_must_be_a_number():
    with pytest.raises(BadRequest, match=r"strconv\.ParseInt"):
        options_of("limit=x", "list")


def test_watch_is_what_is_not_false():
    assert is_watch("watch=true")
    assert is_watch("a=b&watch=1")
    assert not is_watch("watch=false")
    assert not is_watch("watch=0")
    assert not is_watch("labelSelector=watch")


@pytest.mark.parametrize("text", ["1_0", " 1", "१", "9" * 30, "1.5", "x", "--1"])
def test_a_number_is_written_as_go_writes_it(text):
    with pytest.raises(BadRequest, match=r"strconv\.ParseInt"):
        options_of(f"timeoutSeconds={text}", "list")


def test_a_negative_limit_is_none():
    assert options_of("limit=-5", "list").limit == 0


def test_every_method_goes_through_a_proxy():
    """[A9] OPTIONS has no verb, as upstream."""
    path = "/api/v1/namespaces/default/pods/web/proxy/x"
    verbs = {method: request_info(method, path, False).verb for method in _METHODS}
    assert verbs == dict(
        zip(_METHODS, ("get", "get", "create", "update", "patch", "delete", ""), strict=True)
    )
    with pytest.raises(MethodNotAllowed):
        request_info("OPTIONS", "/api/v1/namespaces/default/pods/web", False)
    with pytest.raises(MethodNotAllowed):
        request_info("OPTIONS", "/api/v1/namespaces/default/pods/web/log", False)


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
