from dataclasses import replace

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from sampan.apiserver.authn.tokens import BadToken, Claims, TokenSigner, checked_user
from tests.support.parts.certificates import Authority

ISSUER = "https://issuer.example"
CLAIMS = Claims(("api",), 1000, "team", "bot", "sa-uid")
NOW = 500.0


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


@pytest.fixture(scope="module")
def signer():
    return TokenSigner(pem(ec.generate_private_key(ec.SECP256R1())), ISSUER)


def test_what_was_signed_is_what_is_read(signer):
    bound = replace(
        CLAIMS, bound_kind="pod", bound_name="web", bound_uid="pod-uid", node_name="n1",
        node_uid="node-uid",
    )  # fmt: skip
    read = signer.claims(signer.token(bound, NOW, "id"), NOW)
    assert read == replace(bound, token_id="id", not_before=500)


@pytest.mark.slow
def test_rsa_keys_sign_as_well():
    signer = TokenSigner(pem(rsa.generate_private_key(65537, 2048)), ISSUER)
    assert signer.algorithms == ["RS256"]
    read = signer.claims(signer.token(CLAIMS, NOW, "id"), NOW)
    assert read == replace(CLAIMS, token_id="id", not_before=500)
    assert signer.public_jwks()[0]["kty"] == "RSA"


def forged(token, **header):
    import base64

    _, payload, signature = token.split(".")
    head = base64.urlsafe_b64encode(orjson.dumps(header)).rstrip(b"=").decode()
    return f"{head}.{payload}.{signature}"


def test_bad_tokens_are_refused(signer):
    token = signer.token(CLAIMS, NOW, "id")
    other = TokenSigner(pem(ec.generate_private_key(ec.SECP256R1())), ISSUER)
    stranger = TokenSigner(pem(ec.generate_private_key(ec.SECP256R1())), "https://other")
    stranger._key = signer._key
    cases = {
        "expired": (token, 1000.0),
        "not valid yet": (token, 400.0),
        "malformed": ("abc", NOW),
        "signature": (other.token(CLAIMS, NOW, "id"), NOW),
        "algorithm": (forged(token, alg="none"), NOW),
        "issued by this cluster": (stranger.token(CLAIMS, NOW, "id"), NOW),
    }
    for why, (text, now) in cases.items():
        with pytest.raises(BadToken, match=why):
            signer.claims(text, now)
    tampered = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    with pytest.raises(BadToken):
        signer.claims(tampered, NOW)


def lookup(**objects):
    def find(plural, namespace, name):
        uid = objects.get(f"{plural}_{name}")
        return None if uid is None else {"metadata": {"name": name, "uid": uid}}

    return find


def test_the_account_and_what_the_token_is_bound_to_must_live():
    user = checked_user(CLAIMS, ("api",), lookup(serviceaccounts_bot="sa-uid"), NOW)
    assert user.name == "system:serviceaccount:team:bot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:team")
    with pytest.raises(BadToken, match="service account"):
        checked_user(CLAIMS, ("api",), lookup(serviceaccounts_bot="another"), NOW)
    with pytest.raises(BadToken, match="audiences"):
        checked_user(CLAIMS, ("vault",), lookup(serviceaccounts_bot="sa-uid"), NOW)
    bound = replace(CLAIMS, bound_kind="pod", bound_name="web", bound_uid="p1")
    both = lookup(serviceaccounts_bot="sa-uid", pods_web="p1")
    extra = checked_user(bound, ("api",), both, NOW).extra
    assert extra["authentication.kubernetes.io/pod-name"] == ("web",)
    with pytest.raises(BadToken, match="pod that the token is bound to"):
        checked_user(bound, ("api",), lookup(serviceaccounts_bot="sa-uid", pods_web="p2"), NOW)


def test_the_public_key_is_shown_without_the_private_one(signer):
    [shown] = signer.public_jwks()
    assert shown["kty"] == "EC"
    assert set(shown) == {"use", "kid", "alg", "kty", "crv", "x", "y"}


def test_a_key_that_was_replaced_still_verifies():
    """Rotation: the new key signs, the old one is still believed, and both are published."""
    old_key, new_key = (pem(ec.generate_private_key(ec.SECP256R1())) for _ in range(2))
    old = TokenSigner(old_key, ISSUER)
    new = TokenSigner(new_key, "https://new", old_key, (ISSUER,))
    assert new.claims(old.token(CLAIMS, NOW, "id"), NOW).namespace == "team"
    assert [one["kid"] for one in new.public_jwks()] == [new.key_id, old.key_id]
    with pytest.raises(BadToken):
        old.claims(new.token(CLAIMS, NOW, "id"), NOW)


def test_a_certificate_stands_for_its_key(tmp_path):
    """As envtest names one to be checked with."""
    authority = Authority(tmp_path)
    old = TokenSigner(authority.ca_key_pem(), ISSUER)
    new_key = pem(ec.generate_private_key(ec.SECP256R1()))
    new = TokenSigner(new_key, ISSUER, authority.ca_path.read_bytes())
    assert new.claims(old.token(CLAIMS, NOW, "id"), NOW).namespace == "team"


def test_a_token_that_is_remembered_still_expires(signer):
    token = signer.token(CLAIMS, NOW, "id")
    assert signer.claims(token, NOW) == signer.claims(token, NOW)
    with pytest.raises(BadToken, match="expired"):
        signer.claims(token, 1000.0)


def test_a_pod_that_is_being_deleted_has_a_minute_left():
    bound = replace(CLAIMS, bound_kind="pod", bound_name="web", bound_uid="p1")

    def find(plural, _namespace, name):
        meta = {"name": name, "uid": "sa-uid" if plural == "serviceaccounts" else "p1"}
        if plural == "pods":
            meta["deletionTimestamp"] = "1970-01-01T00:08:20Z"  # 500
        return {"metadata": meta}

    assert checked_user(bound, ("api",), find, 550.0)
    with pytest.raises(BadToken, match="deleted"):
        checked_user(bound, ("api",), find, 561.0)


def test_an_account_that_is_being_deleted_has_a_minute_left():
    """With a finalizer it may stay for long; its tokens do not."""

    def find(_plural, _namespace, name):
        meta = {"name": name, "uid": "sa-uid", "deletionTimestamp": "1970-01-01T00:08:20Z"}
        return {"metadata": meta}  # 500

    assert checked_user(CLAIMS, ("api",), find, 550.0)
    with pytest.raises(BadToken, match="deleted"):
        checked_user(CLAIMS, ("api",), find, 561.0)


def test_a_legacy_token_is_good_while_its_secret_holds_it(signer):
    import base64

    token = signer.legacy_token("team", "bot", "sa-uid", "bot-token")
    claims = signer.claims(token, 10.0**12)
    held = {"metadata": {"uid": "s"}, "data": {"token": base64.b64encode(token.encode()).decode()}}

    def find(plural, _namespace, name):
        return {"serviceaccounts": {"metadata": {"uid": "sa-uid"}}, "secrets": held}.get(plural)

    user = checked_user(claims, ("api",), find, NOW, token)
    assert user.name == "system:serviceaccount:team:bot"
    with pytest.raises(BadToken, match="does not match"):
        checked_user(claims, ("api",), find, NOW, token + "x")
    with pytest.raises(BadToken, match="invalidated"):
        checked_user(claims, ("api",), lookup(serviceaccounts_bot="sa-uid"), NOW, token)
