"""Rules of HTTPRoutes as values."""

import pytest

from sampan.core.http.messages import Request
from sampan.network.gateway.rules import rules_of


def route(**rule):
    return {"metadata": {"name": "r", "namespace": "web"}, "spec": {"rules": [rule]}}


def accepts(match, request):
    (rule,), refused = rules_of(route(matches=[match]))
    assert not refused
    return rule.matches[0].accepts(request)


def request(method="GET", query="", **headers):
    return Request(method, "/", query, headers)


def test_headers_methods_and_parameters_must_all_fit():
    match = {
        "method": "POST",
        "headers": [{"name": "Version", "value": "2"}],
        "queryParams": [{"name": "q", "value": "1"}],
    }
    assert accepts(match, request("POST", "q=1&q=9", version="2"))
    assert not accepts(match, request("GET", "q=1", version="2"))
    assert not accepts(match, request("POST", "q=2", version="2"))
    assert not accepts(match, request("POST", "q=1", version="1"))
    assert not accepts(match, request("POST", "q=1"))
    assert not accepts(match, request("POST", "", version="2"))


def test_regular_expressions_are_for_the_whole_value():
    match = {"headers": [{"name": "v", "type": "RegularExpression", "value": "1|2[0-9]"}]}
    assert accepts(match, request(v="1"))
    assert accepts(match, request(v="25"))
    assert not accepts(match, request(v="12"))


def test_of_two_for_one_header_the_first_counts():
    match = {"headers": [{"name": "A", "value": "1"}, {"name": "a", "value": "2"}]}
    assert accepts(match, request(a="1"))


def test_backends_have_their_namespace_weight_and_kind():
    refs = [
        {"name": "a", "port": 80},
        {"name": "b", "port": 81, "namespace": "other", "weight": 0},
        {"name": "c", "group": "x.io", "kind": "Bucket"},
    ]
    (rule,), _ = rules_of(route(backendRefs=refs))
    assert [(each.kind, each.reference.key, each.port, each.weight) for each in rule.backends] == [
        ("Service", "web/a", 80, 1),
        ("Service", "other/b", 81, 0),
        ("Bucket.x.io", "web/c", 0, 1),
    ]


def test_the_shorter_timeout_counts_and_none_is_none():
    def seconds(**timeouts):
        return rules_of(route(timeouts=timeouts))[0][0].answer_seconds

    assert seconds(request="10s", backendRequest="500ms") == 0.5
    assert seconds(request="0s") is None


@pytest.mark.parametrize(
    "rule",
    [
        {"matches": [{"path": {"type": "Glob", "value": "/*"}}]},
        {"matches": [{"path": {"type": "RegularExpression", "value": "("}}]},
        {"retry": {"attempts": 1}},
        {"sessionPersistence": {"type": "Cookie"}},
        {"filters": [{"type": "CORS"}]},
        {"backendRefs": [{"name": "a", "filters": [{"type": "RequestRedirect"}]}]},
        {"matches": [{"path": {"type": "Exact", "value": "/a"}}],
         "filters": [{"type": "URLRewrite", "urlRewrite": {
             "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/b"}}}]},
    ],
)  # fmt: skip
def test_a_rule_that_asks_for_more_is_refused_whole(rule):
    rules, refused = rules_of(route(**rule))
    assert not rules
    assert refused[0].startswith("spec.rules[0]: ")
