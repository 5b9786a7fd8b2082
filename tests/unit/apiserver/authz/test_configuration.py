"""AuthorizationConfiguration: what a document means, and what is refused."""

import copy

import pytest

from sampan.api.configuration import BadConfiguration
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.authz.conditions import Conditions
from sampan.apiserver.authz.configuration import authorizers_of
from sampan.apiserver.authz.webhook import review_of
from sampan.apiserver.outside.webhook_client import Target
from sampan.core.metrics import Metrics

WEBHOOK = {
    "type": "Webhook",
    "name": "first",
    "webhook": {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "failurePolicy": "Deny",
        "authorizedTTL": "1m30s",
        "cacheUnauthorizedRequests": False,
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/a"},
        "matchConditions": [{"expression": "has(request.resourceAttributes)"}],
    },
}


def target_of(path):
    if path != "/a":
        raise ValueError("there is no such file")
    return Target("https://x")


def document(*authorizers):
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
    return {**kind, "authorizers": [copy.deepcopy(one) for one in authorizers]}


def webhook(**changes):
    return {**WEBHOOK, "webhook": {**WEBHOOK["webhook"], **changes}}


def test_a_chain_of_several_webhooks_and_modes():
    """[A2]"""
    other = {**webhook(timeout="500ms"), "name": "second"}
    rbac = {"type": "RBAC", "name": "rbac"}
    first, second, third = authorizers_of(document(WEBHOOK, other, rbac), target_of)
    assert (first.mode, first.name, first.target.url) == ("Webhook", "first", "https://x")
    assert first.webhook.timeout_seconds == 3
    assert (first.webhook.allowed_seconds, first.webhook.denied_seconds) == (90, 0)
    assert first.webhook.denies_on_failure
    assert second.webhook.timeout_seconds == 0.5
    assert (third.mode, third.target) == ("RBAC", None)


@pytest.mark.parametrize(
    ("authorizers", "why"),
    [
        ([], "at least one authorization mode"),
        ([{"type": "Zoo", "name": "z"}], 'authorizers[0].type: Unsupported value: "Zoo"'),
        ([{"type": "RBAC"}], "authorizers[0].name: Required value"),
        ([{"type": "RBAC", "name": "a"}, {"type": "RBAC", "name": "b"}], "Duplicate value"),
        ([WEBHOOK, WEBHOOK], 'authorizers[1].name: Duplicate value: "first"'),
        ([{"type": "RBAC", "name": "a", "webhook": {}}], "may only be specified when"),
        ([{"type": "Webhook", "name": "a"}], "required when type=Webhook"),
        ([webhook(timeout="31s")], "must be > 0s and <= 30s"),
        ([webhook(timeout="soon")], 'time: invalid duration "soon"'),
        ([webhook(failurePolicy="")], "failurePolicy: Required value"),
        ([webhook(failurePolicy="Allow")], "Unsupported value"),
        ([webhook(subjectAccessReviewVersion="v1beta1")], "Unsupported value"),
        ([webhook(connectionInfo={"type": "KubeConfigFile", "kubeConfigFile": "a"})], "absolute"),
        ([webhook(connectionInfo={"type": "KubeConfigFile", "kubeConfigFile": "/b"})], "no such"),
        ([webhook(connectionInfo={"type": "InClusterConfig"})], "runs in no cluster"),
        ([webhook(matchConditions=[{"expression": "request.shoe"}])], "compilation failed"),
        ([webhook(matchConditions=[{"expression": "request.user"}])], "must evaluate to bool"),
        ([webhook(matchConditions=[{}])], "matchConditions[0].expression: Required value"),
        ([webhook(colour="red")], "webhook.colour: unknown field"),
    ],
)
def test_a_document_with_a_wrong_field_is_refused_whole(authorizers, why):
    with pytest.raises(BadConfiguration) as refused:
        authorizers_of(document(*authorizers), target_of)
    assert why in str(refused.value)


def met(*expressions, metrics=None, **asked):
    user = User("ann", ("dev",))
    spec = review_of(Attributes(user, "get", **asked))["spec"]
    return Conditions(expressions, "first", metrics).met(spec)


def test_conditions_see_what_is_asked():
    assert met("request.user == 'ann'", "'dev' in request.groups", resource="pods")
    assert met("request.resourceAttributes.namespace == 'a'", resource="pods", namespace="a")
    assert not met("request.resourceAttributes.name == 'x'", resource="pods")
    assert not met("has(request.resourceAttributes)", path="/metrics")
    assert met("request.nonResourceAttributes.path == '/metrics'", path="/metrics")


def test_a_condition_that_fails_leaves_it_open_unless_another_says_no():
    failing = "request.resourceAttributes.verb == 'get'"
    metrics = Metrics()
    assert met(failing, path="/x", metrics=metrics) is None
    assert met(failing, "request.user == 'bob'", path="/x", metrics=metrics) is False
    counted = '_evaluation_errors_total{name="first",type="Webhook"} 1'
    assert f"apiserver_authorization_match_condition{counted}" in metrics.render()
