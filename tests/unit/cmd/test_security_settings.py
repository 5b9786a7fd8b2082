"""Flags and the files they name. [A1] [A2] [A3]"""

import json

import pytest

from sampan.apiserver.settings import ApiServerSettings
from sampan.cmd.errors import CannotStart
from sampan.cmd.security import SecurityChoices
from sampan.cmd.security_settings import server_settings


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
    ],
)
def test_a_choice_that_cannot_work_is_one_sentence(chosen, why):
    with pytest.raises(CannotStart, match=why):
        settings(**chosen)
