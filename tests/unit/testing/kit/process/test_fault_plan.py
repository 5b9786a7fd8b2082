from collections import Counter

import pytest

from sampan.testing.kit.process.fault_plan import FAULTS, Asked, asked_of, choices_of, fault_for

PATCH = Asked("patch", "pods", "/api/v1/namespaces/default/pods/p", "operator")


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "resource"),
    [
        ("GET", "/api/v1/pods", "", "list", "pods"),
        ("GET", "/api/v1/namespaces/default/pods", "watch=true&resourceVersion=5", "watch", "pods"),
        ("GET", "/api/v1/namespaces/default", "", "get", "namespaces"),
        ("GET", "/apis/apps/v1/namespaces/d/deployments/web", "", "get", "deployments"),
        ("PATCH", "/apis/apps/v1/namespaces/d/deployments/web/status", "", "patch", "deployments"),
        ("DELETE", "/api/v1/namespaces/d/pods", "", "deletecollection", "pods"),
        ("DELETE", "/api/v1/namespaces/d/pods/p", "", "delete", "pods"),
        ("POST", "/apis/x.example/v1/boats", "", "create", "boats"),
        ("GET", "/version", "", "list", ""),
    ],
)
def test_what_a_request_is_about(method, path, query, verb, resource):
    asked = asked_of(method, path, query, "me")
    assert (asked.verb, asked.resource) == (verb, resource)
    assert asked.has_revision == ("resourceVersion=5" in query)


def plan(**chosen):
    found = choices_of({"seed": 1, "rate": 0.5, **chosen})
    return [fault_for(found, PATCH, count)[0] for count in range(200)]


def test_a_seed_replays_and_another_one_is_another_story():
    assert plan() == plan()
    assert plan() != plan(seed=2)


def test_about_as_many_as_chosen_and_only_what_can_happen_to_the_verb():
    counts = Counter(plan())
    assert 60 < counts.pop("") < 140
    assert {*counts} == {kind for kind, verbs in FAULTS.items() if "patch" in verbs}
    assert {*plan(kinds=["conflict"])} == {"", "conflict"}


@pytest.mark.parametrize(
    "chosen", [{"verbs": ["get"]}, {"resources": ["nodes"]}, {"client": "kopf"}, {"rate": 0}]
)
def test_what_is_not_concerned_meets_none(chosen):
    assert {*plan(**chosen)} == {""}


def test_a_list_expires_only_where_it_named_a_revision():
    chosen = choices_of({"seed": 1, "rate": 1, "kinds": ["expired"]})
    for has_revision, fault in ((True, "expired"), (False, "")):
        asked = Asked("list", "pods", "/api/v1/pods", "me", has_revision)
        assert fault_for(chosen, asked, 1)[0] == fault


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"kind": ["conflict"]}, "no 'kind'"),
        ({"kinds": ["nix"]}, "kinds="),
        ({"kinds": "conflict"}, "kinds="),
        ({"verbs": ["read"]}, "verbs="),
        ({"rate": 2}, "between 0 and 1"),
    ],
)
def test_what_means_nothing_is_refused(chosen, says):
    with pytest.raises(ValueError, match=says):
        choices_of({"seed": 1, **chosen})
