"""An issuer that is slow, lies, or shows odd keys; and tokens that want to be believed."""

import asyncio
import hmac
from contextlib import asynccontextmanager

import orjson
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from sampan.apiserver.authn import oidc as oidc_part
from sampan.apiserver.authn.jwt import BadToken, base64url, parse
from sampan.apiserver.authn.jwt_keys import VerifyingKey
from sampan.apiserver.authn.oidc import Oidc
from sampan.apiserver.authn.settings import OidcSettings
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.core.tls import client_context, server_context
from tests.support.parts.certificates import Authority
from tests.support.parts.loop_holds import loop_holds

pytestmark = [pytest.mark.usefixtures("settled_memory"), pytest.mark.slow, pytest.mark.timeout(300)]
MOST_SECONDS = 0.05
KEY = rsa.generate_private_key(65537, 2048)
PUBLIC = VerifyingKey(KEY.public_key())
DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


def signed_by(key, header, body):
    text = f"{base64url(orjson.dumps(header))}.{base64url(orjson.dumps(body))}"
    return f"{text}.{base64url(key(text.encode()))}"


def rs256(text):
    return KEY.sign(text, padding.PKCS1v15(), hashes.SHA256())


def claims(url, **more):
    return {"iss": url, "aud": "sampan", "sub": "7", "exp": SystemClock().now() + 600, **more}


@asynccontextmanager
async def issuer(authority, answer):
    """`answer(request, url)` for each that is asked; an Oidc that trusts it, and its URL."""
    url = ""

    async def handle(request):
        return await answer(request, url)

    pair = authority.issue("issuer")
    server = Server(handle, ssl_context=server_context(pair.cert_path, pair.key_path))
    url = f"https://127.0.0.1:{await server.start('127.0.0.1', 0)}"
    settings = OidcSettings(
        url, ("sampan",), lambda: client_context(ca_path=authority.ca_path), username_claim="sub"
    )
    found = Oidc(settings, SystemClock())
    try:
        yield found, url
    finally:
        await found.close()
        await server.stop(0.1)


def document(made, status=200):
    return Response(status, [("content-type", "application/json")], orjson.dumps(made))


def showing(keys):
    async def answer(request, url):
        if request.path == DISCOVERY:
            return document({"issuer": url, "jwks_uri": f"{url}/keys"})
        return document({"keys": keys})

    return answer


async def user_of(found, token):
    try:
        return (await found.user(parse(token))).name
    except BadToken:
        return None


def number(value):
    return base64url(value.to_bytes((value.bit_length() + 7) // 8 or 1, "big"))


def odd(bits):
    return (1 << (bits - 1)) + 12345 * 2 + 1


def points(count):
    made = ec.generate_private_key(ec.SECP521R1()).public_key()
    return [VerifyingKey(made, f"k{n}").jwk() for n in range(count)]


KEY_SETS = {
    "keys of 16 384 bits": lambda: [
        {"kty": "RSA", "n": number(odd(16384) + 2 * n), "e": "AQAB"} for n in range(90)],
    "a key of a million bits": lambda: [{"kty": "RSA", "n": number(odd(1_000_000)), "e": "AQAB"}],
    "long exponents": lambda: [
        {"kty": "RSA", "n": number(odd(4096) + 2 * n), "e": number(odd(4000))} for n in range(90)],
    "exponents of 31 bits": lambda: [
        {"kty": "RSA", "n": number(odd(8192) + 2 * n), "e": number(2**31 - 1)} for n in range(150)],
    "points on no curve": lambda: [
        {"kty": "EC", "crv": "P-521", "x": "AA", "y": "AQ"} for _ in range(4_000)],
    "many points": lambda: points(1_000),
    "keys of nothing": lambda: [{}] * 60_000,
    "numbers that are none": lambda: [
        {"kty": "RSA", "n": each, "e": "AQAB"} for each in (1, None, [], {}, "²", "=", "A" * 9)],
    "an exponent of 1": lambda: [{"kty": "RSA", "n": number(odd(2048)), "e": "AQ"}],
    "no list": lambda: {"kty": "RSA"},
    "a text": lambda: "keys",
    "a secret": lambda: [{"kty": "oct", "k": "AAAA", "alg": "HS256"}],
    "short keys": lambda: [{"kty": "RSA", "n": number(odd(512)), "e": "Aw"}] * 9,
}  # fmt: skip


@pytest.mark.parametrize("what", KEY_SETS)
@pytest.mark.parametrize("named", [{}, {"kid": "k1"}], ids=["unnamed", "named"])
def test_no_key_set_holds_anybody_or_lets_anybody_in(authority, what, named):
    keys = KEY_SETS[what]()

    async def measure():
        async with issuer(authority, showing(keys)) as (found, url):
            token = signed_by(rs256, {"alg": "RS256", **named}, claims(url))
            async with loop_holds() as holds:
                assert await user_of(found, token) is None  # the keys are read, and tried
                assert await user_of(found, token) is None
            return holds.longest_seconds

    held = min(asyncio.run(measure()) for _ in range(3))
    print(f"{what}: {held * 1000:.0f} ms")
    assert held < MOST_SECONDS


def as_secret(algorithm, secret):
    digest = {"256": "sha256", "384": "sha384", "512": "sha512"}[algorithm[2:]]
    return lambda text: hmac.digest(secret, text, digest)


PEM = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
EVIL = rsa.generate_private_key(65537, 2048)
HEADERS = {
    "HS256 with the public key": ({"alg": "HS256"}, as_secret("HS256", PEM)),
    "HS512 with the modulus": ({"alg": "HS512"}, as_secret("HS512", PUBLIC.jwk()["n"].encode())),
    "none": ({"alg": "none"}, lambda _: b""),
    "None": ({"alg": "NoNe"}, lambda _: b""),
    "no algorithm": ({}, rs256),
    "a list of algorithms": ({"alg": ["RS256"]}, rs256),
    "an object": ({"alg": {"RS256": 1}}, rs256),
    "a number": ({"alg": 256}, rs256),
    "an algorithm that was not allowed": ({"alg": "PS256"}, lambda text: KEY.sign(
        text, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())),
    "another hash": ({"alg": "RS512"}, lambda text: KEY.sign(
        text, padding.PKCS1v15(), hashes.SHA512())),
    "a key of its own": ({"alg": "RS256", "jwk": VerifyingKey(EVIL.public_key()).jwk()},
        lambda text: EVIL.sign(text, padding.PKCS1v15(), hashes.SHA256())),
    "a key elsewhere": ({"alg": "RS256", "jku": "https://evil.example/keys", "x5u": "https://e/"},
        lambda text: EVIL.sign(text, padding.PKCS1v15(), hashes.SHA256())),
    "a key by a path": ({"alg": "RS256", "kid": "../../../../dev/null"},
        lambda text: hmac.digest(b"", text, "sha256")),
    "another key's name": ({"alg": "RS256", "kid": "k' OR 1=1"}, rs256),
    "a name that is a list": ({"alg": "RS256", "kid": [PUBLIC.key_id]}, rs256),
    "no signature": ({"alg": "RS256"}, lambda _: b""),
    "zeros": ({"alg": "RS256"}, lambda _: bytes(256)),
    "a long signature": ({"alg": "RS256"}, lambda _: bytes(30_000)),
}  # fmt: skip


@pytest.mark.parametrize("what", HEADERS)
def test_no_header_makes_a_token_good(authority, what):
    header, key = HEADERS[what]

    async def main():
        async with issuer(authority, showing([PUBLIC.jwk()])) as (found, url):
            good = signed_by(rs256, {"alg": "RS256", "kid": PUBLIC.key_id}, claims(url))
            assert await user_of(found, good) == f"{url}#7"
            assert await user_of(found, signed_by(key, header, claims(url))) is None
            assert await user_of(found, good) == f"{url}#7"

    asyncio.run(main())


def test_who_is_known_does_not_wait_for_a_slow_issuer(authority):
    """It answers when it is too late; who shows a new key waits, and gets no."""
    answers_at_once = True
    asked = []

    async def answer(request, url):
        asked.append(request.path)
        if not answers_at_once:
            await asyncio.sleep(3600)
        return await showing([PUBLIC.jwk()])(request, url)

    async def main(monkeypatch):
        nonlocal answers_at_once
        async with issuer(authority, answer) as (found, url):
            good = signed_by(rs256, {"alg": "RS256", "kid": PUBLIC.key_id}, claims(url))
            unknown = signed_by(rs256, {"alg": "RS256", "kid": "new"}, claims(url))
            assert await user_of(found, good) == f"{url}#7"
            answers_at_once = False
            found._asked_at = None  # ten seconds later
            strangers = [asyncio.ensure_future(user_of(found, unknown)) for _ in range(50)]  # noqa: TID251
            while len(asked) < 3:
                await asyncio.sleep(0.01)
            assert [await user_of(found, good) for _ in range(20)] == [f"{url}#7"] * 20
            assert not any(each.done() for each in strangers)
            assert await asyncio.gather(*strangers) == [None] * 50  # noqa: TID251
            assert len(asked) == 3, "one question for all of them"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oidc_part, "TIMEOUT_SECONDS", 0.5)
        asyncio.run(main(patch))


DOCUMENTS = {
    "another issuer": {"issuer": "https://elsewhere", "jwks_uri": "{url}/keys"},
    "no keys": {"issuer": "{url}"},
    "keys without encryption": {"issuer": "{url}", "jwks_uri": "http://127.0.0.1:1/keys"},
    "keys in a file": {"issuer": "{url}", "jwks_uri": "file:///etc/passwd"},
    "keys that are a number": {"issuer": "{url}", "jwks_uri": 7},
    "keys at another port": {"issuer": "{url}", "jwks_uri": "https://127.0.0.1:1/keys"},
    "a list": [],
}


@pytest.mark.parametrize("what", DOCUMENTS)
def test_a_document_that_names_nothing_good_lets_nobody_in(authority, what):
    async def answer(request, url):
        if request.path == DISCOVERY:
            return Response(200, [], orjson.dumps(DOCUMENTS[what]).replace(b"{url}", url.encode()))
        return document({"keys": [PUBLIC.jwk()]})

    async def main():
        async with issuer(authority, answer) as (found, url):
            token = signed_by(rs256, {"alg": "RS256", "kid": PUBLIC.key_id}, claims(url))
            assert await user_of(found, token) is None

    asyncio.run(main())


def test_a_redirect_is_not_followed(authority):
    async def answer(request, url):
        if request.path == DISCOVERY:
            return Response(302, [("location", f"{url}/other")], b"")
        return document({"issuer": url, "jwks_uri": f"{url}/keys", "keys": [PUBLIC.jwk()]})

    async def main():
        async with issuer(authority, answer) as (found, url):
            token = signed_by(rs256, {"alg": "RS256", "kid": PUBLIC.key_id}, claims(url))
            assert await user_of(found, token) is None

    asyncio.run(main())
