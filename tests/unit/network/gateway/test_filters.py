"""Filters: headers, paths and redirects as the specification has them."""

import pytest

from sampan.network.gateway.filters import PathChange, Redirect, Unsupported, filters_of

STANDARD = {80: 80, 443: 443}


def headers(kind="RequestHeaderModifier", field="requestHeaderModifier", **changes):
    named = {
        name: [{"name": key, "value": value} for key, value in pairs.items()]
        if isinstance(pairs, dict)
        else pairs
        for name, pairs in changes.items()
    }
    return filters_of([{"type": kind, field: named}])


def test_request_headers_are_set_added_and_removed_whatever_their_case():
    changes = headers(
        set={"X-Set": "new"}, add={"X-Add": "more", "X-New": "a"}, remove=["X-Gone"]
    ).request
    told = {"x-set": "old", "x-add": "some", "x-gone": "b", "x-kept": "c"}
    assert changes.of_request(told) == {
        "x-set": "new",
        "x-add": "some,more",
        "x-new": "a",
        "x-kept": "c",
    }


def test_headers_of_the_answer_keep_their_lines():
    changes = headers(
        "ResponseHeaderModifier", "responseHeaderModifier", set={"A": "1"}, add={"Set-Cookie": "z"}
    ).answer
    lines = [("a", "0"), ("set-cookie", "x"), ("set-cookie", "y")]
    assert changes.of_answer(lines) == [
        ("set-cookie", "x"),
        ("set-cookie", "y"),
        ("a", "1"),
        ("set-cookie", "z"),
    ]


@pytest.mark.parametrize(
    ("path", "prefix", "instead", "changed"),
    [
        ("/foo/bar", "/foo", "/xyz", "/xyz/bar"),
        ("/foo/bar", "/foo", "/xyz/", "/xyz/bar"),
        ("/foo", "/foo", "/xyz", "/xyz"),
        ("/foo/", "/foo", "/xyz", "/xyz/"),
        ("/foo/bar", "/foo", "", "/bar"),
        ("/foo/", "/foo", "", "/"),
        ("/foo", "/foo", "", "/"),
        ("/foo/", "/foo", "/", "/"),
        ("/foo", "/foo", "/", "/"),
        ("/a/b", "", "/xyz", "/xyz/a/b"),
    ],
)
def test_the_prefix_of_a_path_is_replaced_by_whole_elements(path, prefix, instead, changed):
    assert PathChange(prefix=instead).of(path, path, prefix) == changed


def test_what_was_sent_encoded_stays_so():
    assert PathChange(prefix="/x").of("/foo/a%2Fb", "/foo/a/b", "/foo") == "/x/a%2Fb"
    assert PathChange(prefix="/x").of("/%66oo/a b", "/foo/a b", "/foo") == "/x/a%20b"
    assert PathChange(full="/y").of("/foo", "/foo", "/foo") == "/y"


@pytest.mark.parametrize(
    ("redirect", "location"),
    [
        (Redirect(), "http://a.com:8080/p?q=1"),
        (Redirect(hostname="b.org"), "http://b.org:8080/p?q=1"),
        (Redirect(scheme="https"), "https://a.com/p?q=1"),
        (Redirect(scheme="https", port=8443), "https://a.com:8443/p?q=1"),
        (Redirect(port=80), "http://a.com/p?q=1"),
        (Redirect(scheme="http"), "http://a.com/p?q=1"),
    ],
)
def test_a_redirect_says_the_port_where_it_is_not_the_schemes_own(redirect, location):
    ports = {**STANDARD, 0: 8080}
    assert redirect.location("http", "a.com", "/p", "q=1", ports) == location


def test_a_redirect_leads_to_where_the_gateways_ports_are_on_this_machine():
    ports = {80: 8080, 443: 8443, 0: 8080}
    assert Redirect(scheme="https").location("http", "::1", "/", "", ports) == "https://[::1]:8443/"


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "RequestMirror"},
        {"type": "ExtensionRef"},
        {"type": "RequestRedirect", "requestRedirect": {"scheme": "ftp"}},
        {"type": "RequestRedirect", "requestRedirect": {"statusCode": 299}},
        {"type": "URLRewrite", "urlRewrite": {"path": {"type": "Regex"}}},
        {"type": "URLRewrite", "urlRewrite": {"hostname": "a b"}},
        {"type": "RequestHeaderModifier",
         "requestHeaderModifier": {"set": [{"name": "Content-Length", "value": "1"}]}},
        {"type": "RequestHeaderModifier",
         "requestHeaderModifier": {"set": [{"name": "A", "value": "1\r\nB: 2"}]}},
        {"type": "RequestHeaderModifier",
         "requestHeaderModifier": {"add": [{"name": "A: 1\r\nB", "value": "2"}]}},
    ],
)  # fmt: skip
def test_what_is_not_served_is_refused(entry):
    with pytest.raises(Unsupported):
        filters_of([entry])


def test_a_path_that_is_put_in_has_no_line_breaks():
    path = {"type": "ReplaceFullPath", "replaceFullPath": "/a b\r\nX: 1?q"}
    found = filters_of([{"type": "URLRewrite", "urlRewrite": {"path": path}}])
    assert found.path.full == "/a%20b%0D%0AX:%201%3Fq"
