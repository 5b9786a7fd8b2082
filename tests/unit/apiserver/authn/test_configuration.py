"""AuthenticationConfiguration: what a document means, and what is refused."""

import copy

import pytest

from sampan.api.configuration import BadConfiguration
from sampan.apiserver.authn.configuration import rules_of
from sampan.apiserver.authn.expressions import Expressions
from sampan.apiserver.authn.jwt import BadToken
from sampan.apiserver.authn.oidc import user_of

ISSUER = {
    "issuer": {"url": "https://id.example.com", "audiences": ["a", "b"],
               "audienceMatchPolicy": "MatchAny"},
    "claimValidationRules": [
        {"claim": "hd", "requiredValue": "example.com"},
        {"expression": "claims.exp - claims.nbf <= 86400", "message": "lives too long"},
    ],
    "claimMappings": {
        "username": {"expression": "claims.sub + ':ext'"},
        "groups": {"expression": "claims.roles.split(',')"},
        "uid": {"claim": "uid"},
        "extra": [{"key": "example.com/tenant", "valueExpression": "claims.?tenant.orValue('')"}],
    },
    "userValidationRules": [
        {"expression": "!user.username.startsWith('system:')", "message": "reserved"},
        {"expression": "user.groups.all(one, !one.startsWith('system:'))"},
    ],
}  # fmt: skip
CLAIMS = {"hd": "example.com", "exp": 100, "nbf": 1, "sub": "ann", "roles": "dev,ops", "uid": "7"}


def document(*issuers, **more):
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    return {**kind, "jwt": [copy.deepcopy(one) for one in issuers], **more}


def issuer(**changes):
    return {**copy.deepcopy(ISSUER), **changes}


def mapped(claims, **changes):
    (made,) = rules_of(document(issuer(**changes))).issuers
    expressions = Expressions(made)
    user = user_of(claims, made, expressions)
    expressions.check_user(user)
    return user


def test_claims_become_a_user_by_expressions():
    """[A1]"""
    user = mapped(CLAIMS)
    assert (user.name, user.groups, user.uid, user.extra) == ("ann:ext", ("dev", "ops"), "7", {})
    tenant = mapped({**CLAIMS, "tenant": "t1"})
    assert tenant.extra == {"example.com/tenant": ("t1",)}


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": 100_000}, "lives too long"),
        ({"sub": "system:x"}, "reserved"),
        ({"roles": "dev,system:masters"}, "is not true"),
        ({"roles": 7}, "failed"),
        ({"sub": None}, "failed"),
    ],
)
def test_what_a_rule_refuses_is_a_bad_token(claims, why):
    with pytest.raises(BadToken, match=why):
        mapped({**CLAIMS, **claims})


def test_a_name_that_comes_out_empty_is_nobody():
    with pytest.raises(BadToken, match="empty username"):
        mapped(CLAIMS, claimMappings={"username": {"expression": "''"}})


def test_a_claim_with_an_empty_prefix_is_taken_as_it_is():
    user = mapped(CLAIMS, claimMappings={"username": {"claim": "sub", "prefix": ""}})
    assert user.name == "ann"


def test_who_may_stay_anonymous():
    paths = {"enabled": True, "conditions": [{"path": "/livez"}]}
    found = rules_of(document(anonymous=paths))
    assert (found.anonymous, found.anonymous_paths) == (True, ("/livez",))
    assert rules_of(document(anonymous={"enabled": False})).anonymous is False
    assert rules_of(document()).anonymous is None


BAD = [
    ({"issuer": {**ISSUER["issuer"], "url": "http://x"}},
     'jwt[0].issuer.url: Invalid value: "http://x": URL scheme must be https'),
    ({"issuer": {"audiences": ["a"]}}, "jwt[0].issuer.url: Required value: URL is required"),
    ({"issuer": {"url": "https://own"}}, "URL must not overlap with disallowed issuers"),
    ({"issuer": {"url": "https://x"}}, "at least one jwt.audiences is required"),
    ({"issuer": {"url": "https://x", "audiences": ["a", "b"]}},
     "audienceMatchPolicy must be MatchAny for multiple audiences"),
    ({"issuer": {**ISSUER["issuer"], "discoveryURL": "https://id.example.com"}},
     "discoveryURL must be different from URL"),
    ({"issuer": {**ISSUER["issuer"], "certificateAuthority": "no pem"}}, "certificateAuthority"),
    ({"issuer": {**ISSUER["issuer"], "colour": 1}}, "issuer.colour: unknown field"),
    ({"claimMappings": {}}, "claim or expression is required"),
    ({"claimMappings": {"username": {"claim": "sub"}}}, "prefix is required when claim is set"),
    ({"claimMappings": {"username": {"claim": "sub", "prefix": "", "expression": "claims.sub"}}},
     "claim and expression can't both be set"),
    ({"claimMappings": {"username": {"expression": "claims."}}}, "compilation failed"),
    ({"claimMappings": {"username": {"expression": "1 + 1"}}}, "must evaluate to string"),
    ({"claimMappings": {"username": {"expression": "claims.email"}}},
     "claims.email_verified must be used"),
    ({"claimMappings": {**ISSUER["claimMappings"],
                        "extra": [{"key": "kubernetes.io/x", "valueExpression": "'a'"}]}},
     "reserved for Kubernetes use"),
    ({"claimMappings": {**ISSUER["claimMappings"],
                        "extra": [{"key": "X", "valueExpression": "'a'"}]}},
     "must be a domain-prefixed path"),
    ({"claimValidationRules": [{"expression": "claims.sub + 1 + 'x'"}]}, "claimValidationRules[0]"),
    ({"userValidationRules": [{"expression": "user.shoe == 'x'"}]}, "userValidationRules[0]"),
    ({"userValidationRules": [{"expression": "user.username"}]}, "must evaluate to bool"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "why"), BAD)
def test_a_document_with_a_wrong_field_is_refused_whole(changes, why):
    with pytest.raises(BadConfiguration) as refused:
        rules_of(document(issuer(**changes)), ("https://own",))
    assert why in str(refused.value)


def test_two_issuers_are_two_and_conditions_need_anonymous_callers():
    with pytest.raises(BadConfiguration, match=r"jwt\[1\].issuer.url: Duplicate value"):
        rules_of(document(ISSUER, ISSUER))
    off = {"enabled": False, "conditions": [{"path": "/x"}]}
    with pytest.raises(BadConfiguration, match="enabled should be set to true"):
        rules_of(document(anonymous=off))
    with pytest.raises(BadConfiguration, match="is no AuthenticationConfiguration"):
        rules_of({**document(), "apiVersion": "v2"})


def test_a_verified_address_may_be_a_name():
    name = {"username": {"expression": "claims.email_verified ? claims.email : ''"}}
    claims = {**CLAIMS, "email": "a@b", "email_verified": True}
    assert mapped(claims, claimMappings=name).name == "a@b"
