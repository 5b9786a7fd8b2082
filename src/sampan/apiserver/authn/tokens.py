"""Service account tokens: signed JWTs, made by TokenRequest and checked on every request.

Job: sign and verify; what the claims mean. Whether the bound objects still exist is asked of the
    caller's `lookup`.
Invariant: only the algorithm of our own key is accepted; `none` and others never verify.
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from sampan.api.objects import Obj, uid_of
from sampan.apiserver.authn.user import User

PREFIX = "system:serviceaccount:"
_EC_BYTES = 32  # P-256: r and s

# (plural, namespace, name) → the object, or None where it is gone.
Lookup = Callable[[str, str, str], Obj | None]


class BadToken(Exception):
    """The token was not made by us, or is no longer good; the text says why."""


@dataclass(frozen=True, slots=True)
class Claims:
    audiences: tuple[str, ...]
    expires: int
    namespace: str
    service_account: str
    service_account_uid: str
    bound_kind: str = ""  # pod, secret or node
    bound_name: str = ""
    bound_uid: str = ""


class TokenSigner:
    def __init__(self, key_pem: bytes, issuer: str) -> None:
        key = serialization.load_pem_private_key(key_pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ValueError("service account tokens need an EC or RSA key")
        self._key = key
        self.issuer = issuer
        self.algorithm = "ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "RS256"
        public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        digest = hashes.Hash(hashes.SHA256())
        digest.update(public)
        self.key_id = _encoded(digest.finalize())

    def token(self, claims: Claims, now: float, token_id: str) -> str:
        header = {"alg": self.algorithm, "kid": self.key_id}
        body = self._body(claims, int(now), token_id)
        signed = f"{_encoded(orjson.dumps(header))}.{_encoded(orjson.dumps(body))}"
        return f"{signed}.{_encoded(self._signature(signed.encode()))}"

    def claims(self, token: str, now: float) -> Claims:
        """What a token of ours says, if its signature and time are good. Raises BadToken."""
        signed, _, signature = token.rpartition(".")
        head, _, payload = signed.partition(".")
        try:
            header, body = orjson.loads(_decoded(head)), orjson.loads(_decoded(payload))
            given = _decoded(signature)
        except ValueError as error:
            raise BadToken("the token is malformed") from error
        if not isinstance(header, dict) or header.get("alg") != self.algorithm:
            raise BadToken("the token is signed with an algorithm that is not ours")
        self._verify(signed.encode(), given)
        return _claims_of(body, self.issuer, now)

    def public_jwk(self) -> Obj:
        """The key as /openid/v1/jwks shows it."""
        shown = {"use": "sig", "kid": self.key_id, "alg": self.algorithm}
        public = self._key.public_key()
        if isinstance(public, ec.EllipticCurvePublicKey):
            point = public.public_numbers()
            x, y = (_encoded(n.to_bytes(_EC_BYTES, "big")) for n in (point.x, point.y))
            return {**shown, "kty": "EC", "crv": "P-256", "x": x, "y": y}
        numbers = public.public_numbers()
        n, e = (
            _encoded(v.to_bytes((v.bit_length() + 7) // 8, "big")) for v in (numbers.n, numbers.e)
        )
        return {**shown, "kty": "RSA", "n": n, "e": e}

    def _body(self, claims: Claims, now: int, token_id: str) -> Obj:
        inner: Obj = {"namespace": claims.namespace}
        if claims.bound_kind:
            inner[claims.bound_kind] = {"name": claims.bound_name, "uid": claims.bound_uid}
        account = {"name": claims.service_account, "uid": claims.service_account_uid}
        inner["serviceaccount"] = account
        return {
            "aud": list(claims.audiences),
            "exp": claims.expires,
            "iat": now,
            "iss": self.issuer,
            "jti": token_id,
            "kubernetes.io": inner,
            "nbf": now,
            "sub": f"{PREFIX}{claims.namespace}:{claims.service_account}",
        }

    def _signature(self, data: bytes) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        r, s = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_EC_BYTES, "big") + s.to_bytes(_EC_BYTES, "big")

    def _verify(self, data: bytes, signature: bytes) -> None:
        public = self._key.public_key()
        try:
            if isinstance(public, rsa.RSAPublicKey):
                public.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
                return
            if len(signature) != 2 * _EC_BYTES:
                raise BadToken("the token's signature is not good")
            r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
            public.verify(encode_dss_signature(r, s), data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature as error:
            raise BadToken("the token's signature is not good") from error


def checked_user(claims: Claims, audiences: Sequence[str], lookup: Lookup) -> User:
    """The service account, if the token is meant for us and what it is bound to still lives."""
    if not set(audiences) & set(claims.audiences):
        raise BadToken(f"token audiences {list(claims.audiences)} is invalid for this server")
    account = lookup("serviceaccounts", claims.namespace, claims.service_account)
    if account is None or uid_of(account) != claims.service_account_uid:
        raise BadToken("the service account of the token has been deleted")
    extra: dict[str, tuple[str, ...]] = {}
    if claims.bound_kind:
        namespace = "" if claims.bound_kind == "node" else claims.namespace
        bound = lookup(f"{claims.bound_kind}s", namespace, claims.bound_name)
        if bound is None or uid_of(bound) != claims.bound_uid:
            raise BadToken(f"the {claims.bound_kind} that the token is bound to has been deleted")
        start = f"authentication.kubernetes.io/{claims.bound_kind}"
        extra = {f"{start}-name": (claims.bound_name,), f"{start}-uid": (claims.bound_uid,)}
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{claims.namespace}")
    name = f"{PREFIX}{claims.namespace}:{claims.service_account}"
    return User(name, groups, claims.service_account_uid, extra)


def _claims_of(body: Any, issuer: str, now: float) -> Claims:
    inner = body.get("kubernetes.io") if isinstance(body, dict) else None
    if not isinstance(inner, dict) or body.get("iss") != issuer:
        raise BadToken("the token was not issued by this cluster")
    expires, not_before = int(body.get("exp") or 0), int(body.get("nbf") or 0)
    if now >= expires:
        raise BadToken("service account token has expired")
    if now + 60 < not_before:
        raise BadToken("service account token is not valid yet")
    account = inner.get("serviceaccount") or {}
    bound = next((kind for kind in ("pod", "secret", "node") if inner.get(kind)), "")
    reference = inner.get(bound) or {}
    return Claims(
        audiences=tuple(body.get("aud") or ()),
        expires=expires,
        namespace=str(inner.get("namespace") or ""),
        service_account=str(account.get("name") or ""),
        service_account_uid=str(account.get("uid") or ""),
        bound_kind=bound,
        bound_name=str(reference.get("name") or ""),
        bound_uid=str(reference.get("uid") or ""),
    )


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
