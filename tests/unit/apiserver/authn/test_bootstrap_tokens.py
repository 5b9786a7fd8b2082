"""Bootstrap tokens. [A1]"""

import base64

import pytest

from sampan.apiserver.authn.bootstrap_tokens import bootstrap_user
from sampan.apiserver.authn.jwt import BadToken

TOKEN = "abcdef.0123456789abcdef"
GOOD = {
    "token-id": "abcdef",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
    "expiration": "2030-01-01T00:00:00Z",
    "auth-extra-groups": "system:bootstrappers:workers",
}


def asked(token=TOKEN, now=0.0, kind="bootstrap.kubernetes.io/token", **changes):
    data = {**GOOD, **{key.replace("_", "-"): value for key, value in changes.items()}}
    secret = {
        "type": kind,
        "metadata": {"name": "bootstrap-token-abcdef"},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }

    def find(plural, namespace, name):
        assert (plural, namespace) == ("secrets", "kube-system")
        return secret if name == "bootstrap-token-abcdef" else None

    return bootstrap_user(token, find, now)


def test_a_good_token_is_a_bootstrapper_of_its_groups():
    user = asked()
    assert user.name == "system:bootstrap:abcdef"
    assert user.groups == ("system:bootstrappers", "system:bootstrappers:workers")


@pytest.mark.parametrize("token", ["abcdef", "ghijkl.0123456789abcdef", "ABCDEF.0123456789abcdef"])
def test_what_is_no_bootstrap_token_is_left_to_others(token):
    assert asked(token) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": "abcdef.ffffffffffffffff"},
        {"now": 2e9},
        {"expiration": "soon"},
        {"usage_bootstrap_authentication": "false"},
        {"auth_extra_groups": "system:masters"},
        {"kind": "Opaque"},
        {"token_id": "other1"},
    ],
)
def test_a_bad_token_is_refused(wrong):
    with pytest.raises(BadToken):
        asked(**wrong)
