"""The audit policy. [A10]"""

import pytest

from sampan.api.resources import PODS, SECRETS
from sampan.apiserver.audit.policy import AuditPolicy, BadPolicy, Level
from sampan.apiserver.authn.user import User
from sampan.apiserver.http.request import RequestInfo

BOB = User("bob", ("dev",))


def policy(*rules, **more):
    return AuditPolicy(
        {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more}
    )


def level(given, resource=PODS, verb="get", namespace="a", name="", sub="", user=BOB, path="/x"):
    info = RequestInfo(verb, path, resource, namespace, name, sub) if resource else None
    return given.ruled(user, verb, info, path).level


def test_the_first_rule_that_matches_decides():
    given = policy(
        {"level": "None", "users": ["system:kube-proxy"]},
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "pods/log"]}]},
        {"level": "Request", "verbs": ["create"], "namespaces": ["a"]},
        {"level": "RequestResponse", "userGroups": ["dev"], "resources": [{"group": ""}]},
        {"level": "None", "nonResourceURLs": ["/healthz*"]},
    )
    assert level(given, user=User("system:kube-proxy", ("dev",))) is Level.NONE
    assert level(given, SECRETS) is Level.METADATA
    assert level(given, sub="log") is Level.METADATA
    assert level(given, verb="create") is Level.REQUEST
    assert level(given, verb="create", namespace="b") is Level.REQUEST_RESPONSE
    assert level(given, user=User("x")) is Level.NONE
    assert level(given, None, path="/healthz/x") is Level.NONE


@pytest.mark.parametrize(
    ("pattern", "sub", "matches"),
    [
        ("pods", "", True), ("pods", "log", False), ("pods/*", "log", True), ("pods/*", "", False),
        ("*/log", "log", True), ("*/status", "log", False), ("*", "log", True),
        ("nodes", "", False),
    ],
)  # fmt: skip
def test_resources_are_named_with_their_subresources(pattern, sub, matches):
    given = policy({"level": "Metadata", "resources": [{"group": "", "resources": [pattern]}]})
    assert (level(given, sub=sub) is Level.METADATA) == matches


def test_stages_and_managed_fields_are_left_out_by_rule_or_for_all():
    given = policy(
        {"level": "Metadata", "omitStages": ["RequestReceived"], "omitManagedFields": False},
        omitStages=["Panic"],
        omitManagedFields=True,
    )
    ruled = given.ruled(BOB, "get", None, "/x")
    assert ruled.omit_stages == {"RequestReceived", "Panic"}
    assert ruled.omit_managed_fields is False


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"},
        {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "All"}]},
        {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "rules": [{"level": "None", "omitStages": ["x"]}],
        },
    ],
)
def test_a_policy_that_means_nothing_is_refused(broken):
    with pytest.raises(BadPolicy):
        AuditPolicy(broken)
