from dataclasses import replace

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from sampan.apiserver.authn.tokens import BadToken, Claims, TokenSigner, checked_user

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
    bound = replace(CLAIMS, bound_kind="pod", bound_name="web", bound_uid="pod-uid")
    assert signer.claims(signer.token(bound, NOW, "id"), NOW) == bound


@pytest.mark.slow
def test_rsa_keys_sign_as_well():
    signer = TokenSigner(pem(rsa.generate_private_key(65537, 2048)), ISSUER)
    assert signer.algorithm == "RS256"
    assert signer.claims(signer.token(CLAIMS, NOW, "id"), NOW) == CLAIMS
    assert signer.public_jwk()["kty"] == "RSA"


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
    user = checked_user(CLAIMS, ("api",), lookup(serviceaccounts_bot="sa-uid"))
    assert user.name == "system:serviceaccount:team:bot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:team")
    with pytest.raises(BadToken, match="service account"):
        checked_user(CLAIMS, ("api",), lookup(serviceaccounts_bot="another"))
    with pytest.raises(BadToken, match="audiences"):
        checked_user(CLAIMS, ("vault",), lookup(serviceaccounts_bot="sa-uid"))
    bound = replace(CLAIMS, bound_kind="pod", bound_name="web", bound_uid="p1")
    both = lookup(serviceaccounts_bot="sa-uid", pods_web="p1")
    extra = checked_user(bound, ("api",), both).extra
    assert extra["authentication.kubernetes.io/pod-name"] == ("web",)
    with pytest.raises(BadToken, match="pod that the token is bound to"):
        checked_user(bound, ("api",), lookup(serviceaccounts_bot="sa-uid", pods_web="p2"))


def test_the_public_key_is_shown_without_the_private_one(signer):
    shown = signer.public_jwk()
    assert shown["kty"] == "EC"
    assert set(shown) == {"use", "kid", "alg", "kty", "crv", "x", "y"}
