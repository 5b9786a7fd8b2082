"""Which backend a host and a path lead to: the examples are those of Kubernetes' documentation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.network.ingress.routing import (
    backends_of,
    host_of,
    plain_path,
    routing_table,
    tls_hosts,
)


def ingress(rules=(), name="web", created="2024-01-01T00:00:00Z", default="", tls=()):
    """`rules`: (host, path type, path, service)."""
    spec = {"rules": [rule(*each) for each in rules], "tls": list(tls)}
    if default:
        spec["defaultBackend"] = backend(default)
    meta = {"name": name, "namespace": "shop", "creationTimestamp": created}
    return {"metadata": meta, "spec": spec}


def rule(host, path_type, path, service):
    entry = {"pathType": path_type, "path": path, "backend": backend(service)}
    return {"host": host, "http": {"paths": [entry]}} if host else {"http": {"paths": [entry]}}


def backend(service):
    return {"service": {"name": service, "port": {"number": 80}}}


def answers(found):
    return None if found is None else found.service


@pytest.mark.parametrize(
    ("path_type", "path", "asked", "matches"),
    [
        ("Prefix", "/", "/any/path", True),
        ("Exact", "/foo", "/foo", True),
        ("Exact", "/foo", "/bar", False),
        ("Exact", "/foo", "/foo/", False),
        ("Exact", "/foo/", "/foo", False),
        ("Prefix", "/foo", "/foo", True),
        ("Prefix", "/foo", "/foo/", True),
        ("Prefix", "/foo/", "/foo", True),
        ("Prefix", "/foo/", "/foo/", True),
        ("Prefix", "/aaa/bb", "/aaa/bbb", False),
        ("Prefix", "/aaa/bbb", "/aaa/bbb", True),
        ("Prefix", "/aaa/bbb/", "/aaa/bbb", True),
        ("Prefix", "/aaa/bbb", "/aaa/bbb/", True),
        ("Prefix", "/aaa/bbb", "/aaa/bbb/ccc", True),
        ("Prefix", "/aaa/bbb", "/aaa/bbbxyz", False),
        ("Prefix", "/foo", "/FOO", False),
        ("ImplementationSpecific", "/foo", "/foo/bar", True),
        ("ImplementationSpecific", "/foo", "/foobar", False),
        ("ImplementationSpecific", "", "/any", True),
    ],
)
def test_a_path_matches_by_its_type(path_type, path, asked, matches):
    table = routing_table([ingress([("", path_type, path, "web")])])
    assert (table.match("host", asked) is not None) == matches


@pytest.mark.parametrize(
    ("asked", "service"),
    [
        ("/aaa/ccc", "short"),
        ("/aaa/bbb/ccc", "long"),
        ("/ccc", "root"),
        ("/exact", "exact"),
        ("/exact/", "prefix"),
        ("/both", "slash"),
    ],
)
def test_exact_comes_first_then_the_longest_path(asked, service):
    rules = [
        ("", "Prefix", "/", "root"),
        ("", "Prefix", "/aaa", "short"),
        ("", "Prefix", "/aaa/bbb", "long"),
        ("", "Prefix", "/exact", "prefix"),
        ("", "Exact", "/exact", "exact"),
        ("", "Prefix", "/both", "bare"),
        ("", "Prefix", "/both/", "slash"),
    ]
    for given_order in (rules, rules[::-1]):
        assert answers(routing_table([ingress(given_order)]).match("h", asked)) == service


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("bar.foo.com", "exact"),
        ("other.foo.com", "wildcard"),
        ("baz.bar.foo.com", "all"),
        ("foo.com", "all"),
        ("", "all"),
    ],
)
def test_a_precise_host_comes_before_a_wildcard_which_is_one_label(host, service):
    rules = [
        ("", "Prefix", "/", "all"),
        ("*.foo.com", "Prefix", "/", "wildcard"),
        ("bar.foo.com", "Prefix", "/", "exact"),
    ]
    assert answers(routing_table([ingress(rules)]).match(host, "/")) == service


def test_a_rule_for_all_hosts_is_for_those_of_other_rules_too():
    """types.go: without a host, all traffic is routed by the rule."""
    rules = [("foo.com", "Exact", "/a", "one"), ("", "Prefix", "/", "all")]
    table = routing_table([ingress(rules)])
    assert answers(table.match("foo.com", "/a")) == "one"
    assert answers(table.match("foo.com", "/b")) == "all"


def test_what_no_rule_matches_goes_to_the_default_backend_of_the_host_then_to_any():
    first = ingress([("a.com", "Exact", "/x", "x")], name="a", default="first")
    second = ingress([("b.com", "Exact", "/x", "x")], name="b", default="second")
    table = routing_table([first, second])
    assert answers(table.match("b.com", "/y")) == "second"
    assert answers(table.match("c.com", "/")) == "first"
    assert routing_table([ingress([("a.com", "Exact", "/x", "x")])]).match("a.com", "/") is None


def test_of_two_that_want_the_same_the_older_has_it():
    old = ingress([("", "Prefix", "/", "old")], name="z", created="2024-01-01T00:00:00Z")
    new = ingress([("", "Prefix", "/", "new")], name="a", created="2024-01-02T00:00:00Z")
    assert answers(routing_table([new, old]).match("h", "/")) == "old"


def test_a_rule_without_paths_leads_to_the_default_backend():
    bare = ingress(default="web")
    bare["spec"]["rules"] = [{"host": "foo.com"}]
    assert answers(routing_table([bare]).match("foo.com", "/")) == "web"


def test_secrets_are_found_by_server_name():
    named = {"hosts": ["A.com", "*.b.com"], "secretName": "one"}
    table = routing_table(
        [
            ingress(name="a", tls=[named]),
            ingress([("r.com", "Prefix", "/", "web")], name="b", tls=[{"secretName": "two"}]),
        ]
    )
    assert table.secret_for("a.com") == table.secret_for("x.b.com") == "shop/one"
    assert table.secret_for("r.com") == "shop/two"
    assert table.secret_for("x.y.b.com") is None
    assert table.secret_keys() == {"shop/one", "shop/two"}
    assert list(tls_hosts(ingress(tls=[{"hosts": ["a.com"]}]))) == []


def test_backends_are_told_once_and_resources_by_kind():
    one = ingress([("", "Exact", "/a", "web"), ("", "Exact", "/b", "web")], default="web")
    assert [each.service for each in backends_of(one)] == ["web"]
    one["spec"]["defaultBackend"] = {"resource": {"kind": "Bucket", "name": "b"}}
    assert [each.resource for each in backends_of(one)] == ["Bucket/b", ""]


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("Foo.com", "foo.com"),
        ("foo.com:8080", "foo.com"),
        ("foo.com.", "foo.com"),
        ("[::1]:80", "::1"),
        ("", ""),
    ],
)
def test_a_host_is_without_its_port(header, host):
    assert host_of(header) == host


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/a/b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a/..", "/"),
        ("/a/b/..", "/a/"),
        ("/a/%2e%2e/b", "/b"),
        ("/a%2Fb", "/a/b"),
        ("/..", None),
        ("/a/../../b", None),
        ("*", None),
        ("host:443", None),
        ("/\ufffd", None),
        ("/.well-known/x", "/.well-known/x"),
    ],
)
def test_a_path_is_compared_as_a_backend_reads_it(path, plain):
    assert plain_path(path) == plain


ELEMENTS = st.lists(st.sampled_from(["a", "b", "aa", ""]), min_size=1, max_size=4)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(ELEMENTS, max_size=5), ELEMENTS)
def test_the_longest_prefix_by_elements_wins(prefixes, asked):
    """Compared element by element, as types.go says it, without the table."""
    paths = ["/" + "/".join(each) for each in prefixes]
    path = "/" + "/".join(asked)
    table = routing_table([ingress([("", "Prefix", each, each) for each in paths])])

    def elements(text):
        return text.removesuffix("/").split("/")

    matching = [each for each in paths if elements(path)[: len(elements(each))] == elements(each)]
    longest = max(matching, key=len, default=None)
    assert answers(table.match("h", path)) == longest
