"""Flags and the files they name. [A1] [A2] [A3]"""

import json

import orjson
import pytest

from sampan.apiserver.settings import ApiServerSettings
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.api_server_flags import SecurityChoices
from sampan.cmd.flags.security_settings import server_settings


def settings(**chosen):
    return ApiServerSettings(**server_settings(SecurityChoices(**chosen), b"CA"))


def test_without_flags_the_server_is_secure():
    made = settings()
    assert made.authorization_modes == ("Node", "RBAC")
    assert made.anonymous_paths == {"/healthz", "/livez", "/readyz", "/version"}
    assert made.bootstrap_tokens
    assert (made.audit_policy, made.encryption, made.oidc) == (None, None, ())


def test_files_become_settings(tmp_path):
    (tmp_path / "tokens").write_text("t,u,1")
    (tmp_path / "audit").write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []")
    hook = {
        "clusters": [{"name": "c", "cluster": {"server": "https://hook.example/x"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "hook").write_text(json.dumps(hook))
    admission = {
        "plugins": [
            {
                "name": "PodSecurity",
                "configuration": {
                    "defaults": {"enforce": "baseline", "enforce-version": "v1.30"},
                    "exemptions": {"namespaces": ["kube-system"]},
                },
            },
            {
                "name": "EventRateLimit",
                "configuration": {"limits": [{"type": "Server", "qps": 5, "burst": 9}]},
            },
        ]
    }
    (tmp_path / "admission").write_text(json.dumps(admission))
    made = settings(
        token_file=str(tmp_path / "tokens"),
        audit_policy_file=str(tmp_path / "audit"),
        audit_log=str(tmp_path / "log"),
        audit_max_megabytes=3,
        token_webhook_file=str(tmp_path / "hook"),
        admission_file=str(tmp_path / "admission"),
        enabled_plugins=("AlwaysPullImages",),
        oidc_issuer="https://issuer",
        oidc_client_id="me",
        oidc_required=("a=b",),
        account_issuers=("https://new", "https://old"),
    )
    assert made.token_file == "t,u,1"
    assert made.audit_file.max_bytes == 3 * 1024 * 1024
    assert (made.token_webhook.url, made.token_webhook.token) == (
        "https://hook.example/x",
        "secret",
    )
    assert str(made.admission.pod_security.defaults["enforce"]) == "baseline:v1.30"
    assert made.admission.event_limits[0].burst == 9
    assert made.oidc[0].required_claims == (("a", "b"),)
    assert made.token_other_issuers == ("https://old",)


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"authorization_modes": ("RABC",)}, "RABC"),
        ({"authorization_modes": ("ABAC",)}, "--authorization-policy-file"),
        ({"authorization_modes": ("Webhook",)}, "--authorization-webhook-config-file"),
        ({"anonymous": "maybe"}, "--anonymous-auth"),
        ({"oidc_issuer": "http://plain", "oidc_client_id": "x"}, "https"),
        ({"audit_log": "/x"}, "--audit-policy-file"),
        ({"token_file": "/does/not/exist"}, "cannot read"),
        ({"enabled_plugins": ("ImagePolicyWebhook",)}, "needs a configuration"),
        ({"fairness": "maybe"}, "--enable-priority-and-fairness"),
        ({"reads_in_flight": 0}, "at least 1"),
        ({"account_extend": "x"}, "--service-account-extend-token-expiration"),
        ({"authentication_config": "/does/not/exist"}, "/does/not/exist"),
        ({"authorization_config": "/x", "authorization_modes": ("RBAC",)}, "can not be specified"),
        (
            {"authentication_config": "/x", "oidc_issuer": "https://x", "oidc_client_id": "c"},
            "mutually exclusive",
        ),
    ],
)
def test_a_choice_that_cannot_work_is_one_sentence(chosen, why):
    with pytest.raises(CannotStart, match=why):
        settings(**chosen)


def written(path, document):
    path.write_bytes(orjson.dumps(document))
    return str(path)


def test_plugins_are_configured_by_a_file(tmp_path):
    hook = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "https://images.example/"}}],
        "users": [{"name": "x", "user": {}}],
    }
    written(tmp_path / "hook", hook)
    written(tmp_path / "beside", {"limitedResources": [{"resource": "pods"}]})
    policy = {"kubeConfigFile": "hook", "allowTTL": 50, "retryBackoff": 100, "defaultAllow": True}
    selectors = {"clusterDefaultNodeSelector": "a=b", "team": "c=d"}
    plugins = [
        {"name": "ImagePolicyWebhook", "configuration": {"imagePolicy": policy}},
        {
            "name": "PodNodeSelector",
            "configuration": {"podNodeSelectorPluginConfig": selectors},
        },
        {"name": "PodTolerationRestriction", "configuration": {"default": [{"key": "k"}]}},
        {"name": "ResourceQuota", "path": "beside"},
    ]
    file = written(tmp_path / "admission", {"plugins": plugins})
    made = settings(
        admission_file=file, enabled_plugins=("ImagePolicyWebhook",), unreachable_seconds=60
    ).admission
    assert made.image_policy.target.url == "https://images.example"
    assert (made.image_policy.allowed_seconds, made.image_policy.denied_seconds) == (50, 30)
    assert (made.image_policy.retry_seconds, made.image_policy.allows_on_failure) == (0.1, True)
    assert made.node_selectors.cluster_default == "a=b"
    assert made.node_selectors.allowed == {"team": "c=d"}
    assert made.tolerations.defaults == ({"key": "k"},)
    assert made.limited_resources == ({"resource": "pods"},)
    assert (made.not_ready_seconds, made.unreachable_seconds) == (300, 60)
    nothing = written(tmp_path / "nothing", {"plugins": [{"name": "Priority"}]})
    with pytest.raises(CannotStart, match="Priority has nothing to configure"):
        settings(admission_file=nothing)


def test_who_may_stay_anonymous_is_said_in_one_place(tmp_path):
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    paths = {"enabled": True, "conditions": [{"path": "/livez"}]}
    file = written(tmp_path / "a", {**kind, "anonymous": paths})
    assert settings(authentication_config=file).anonymous_paths == {"/livez"}
    with pytest.raises(CannotStart, match="--anonymous-auth flag cannot be set"):
        settings(authentication_config=file, anonymous="true")
    every = written(tmp_path / "b", {**kind, "anonymous": {"enabled": True}})
    assert settings(authentication_config=every).anonymous_paths is None
    nobody = written(tmp_path / "c", {**kind, "anonymous": {"enabled": False}})
    assert settings(authentication_config=nobody).anonymous_paths == frozenset()


def test_seats_are_both_limits_together():
    made = settings(reads_in_flight=30, writes_in_flight=20)
    assert (made.request_seats, made.max_requests_in_flight) == (50, 30)
    assert settings(fairness="false").request_seats == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no key in it"),
        ("rubbish", "there is no key in it"),
        ("-----BEGIN PUBLIC KEY-----\nrubbish\n-----END PUBLIC KEY-----\n", ""),
        ("-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n", ""),
    ],
)
def test_a_key_file_without_a_key_is_named(tmp_path, text, says):
    path = tmp_path / "key.pem"
    path.write_text(text)
    with pytest.raises(CannotStart, match=f"--service-account-key-file {path}: .*{says}"):
        settings(account_key_files=(str(path),))
