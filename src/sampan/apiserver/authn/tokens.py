"""Service account tokens: signed JWTs, made by TokenRequest and checked on every request.

Job: sign and verify; what the claims mean. Whether the bound objects still exist is asked of the
    caller's `lookup`.
Invariant: only the algorithms of our own keys are accepted; `none` and others never verify.
Invariant: what was verified is remembered by the whole token, at most MOST; its time is checked
    anew on every request, and what it is bound to as well.
"""

import hmac
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from sampan.api.objects import Obj, labels_of, meta_of, seconds_of, uid_of
from sampan.apiserver.authn.jwt import BadToken, Parsed, base64url, parse
from sampan.apiserver.authn.user import ACCOUNT_PREFIX, ACCOUNTS_GROUP, User
from sampan.core.bounded import Bounded
from sampan.core.fast_dataclass import dataclass

if TYPE_CHECKING:
    from sampan.apiserver.authn.jwt_keys import SigningKey, VerifyingKey

__all__ = [
    "INVALID_SINCE", "PREFIX", "BadToken", "Claims", "InvalidatedToken", "Lookup", "Signer",
    "SignerFailure", "TokenChecker", "TokenSigner", "UnknownKey", "checked_user", "token_body",
]  # fmt: skip

INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
PREFIX = ACCOUNT_PREFIX
MOST = 4096
_LEGACY_ISSUER = "kubernetes/serviceaccount"
_DELETED_LEEWAY_SECONDS = 60  # as upstream: a pod that is being deleted may still say goodbye
_EXTRA = "authentication.kubernetes.io/"

# (plural, namespace, name) → the object, or None where it is gone.
Lookup = Callable[[str, str, str], Obj | None]


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
    # Of a token that is bound to a pod: where that pod runs.
    node_name: str = ""
    node_uid: str = ""
    token_id: str = ""
    not_before: int = 0
    legacy_secret: str = ""  # an old token without an end, kept in this secret
    warn_after: int = 0  # its user should have fetched another one by then; 0: no such time


class InvalidatedToken(BadToken):
    """A legacy token that nobody had used for long, and that is no longer taken."""


class UnknownKey(BadToken):
    """The token names a key that is not known here; whoever knows keys may be asked for it."""


class SignerFailure(ValueError):
    """A program that signs is not there, or what it says makes no sense."""


class Signer(Protocol):
    """Who makes this cluster's tokens, and says what they say."""

    issuer: str

    @property
    def most_seconds(self) -> int:
        """For which a token may be asked for; 0: no bound."""

    @property
    def longest_seconds(self) -> int:
        """For which the signer signs at all; 0: no bound."""

    async def start(self) -> None:
        """Raises SignerFailure."""

    async def keep_going(self) -> None:
        """Until cancelled, or until there is nothing left to keep."""

    async def close(self) -> None: ...

    @property
    def algorithms(self) -> list[str]: ...

    def token(self, claims: Claims, now: float, token_id: str) -> str | Awaitable[str]:
        """Raises ApiError."""

    def issued(self, token: str) -> bool:
        """Whether it says that it is ours; others may know what it is, if not."""

    def claims(self, token: str, now: float) -> Claims:
        """What a token of ours says, if its signature and time are good. Raises BadToken."""

    async def fetch_keys(self) -> None:
        """After UnknownKey: there may be new ones. Raises BadToken."""

    def public_jwks(self) -> list[Obj]:
        """As /openid/v1/jwks shows them."""

    def keys_last_seconds(self) -> int:
        """So long they may be kept by who has read them."""


Keys = Callable[[str], "Sequence[VerifyingKey]"]  # id, or nothing → keys. Raises UnknownKey


class TokenChecker:
    """What tokens say that were signed with one of the keys."""

    def __init__(self, issuers: Iterable[str], keys: Keys) -> None:
        self._issuers, self._keys = frozenset(issuers), keys
        self._known: Bounded[str, Claims] = Bounded(MOST)

    def forget(self) -> None:
        """Keys have gone."""
        self._known.clear()

    def issued(self, token: str) -> bool:
        if token in self._known:
            return True
        return parse(token).body.get("iss") in self._issuers | {_LEGACY_ISSUER}

    def claims(self, token: str, now: float) -> Claims:
        """Raises BadToken."""
        claims = self._known.get(token)
        if claims is None:
            claims = self._verify(parse(token))
            self._known[token] = claims
        if not claims.legacy_secret:
            if now >= claims.expires:
                raise BadToken("service account token has expired")
            if now + 60 < claims.not_before:
                raise BadToken("service account token is not valid yet")
        return claims

    def _verify(self, token: Parsed) -> Claims:
        trouble: BadToken | None = None
        for key in self._keys(str(token.header.get("kid") or "")):
            try:
                key.verify(token)
                break
            except BadToken as error:
                trouble = error
        else:
            raise trouble or BadToken("the token's signature is not good")
        if token.body.get("iss") == _LEGACY_ISSUER:
            return _legacy_claims_of(token.body)
        return _claims_of(token.body, self._issuers)


class TokenSigner:
    """With a key of its own."""

    def __init__(
        self, key_pem: bytes, issuer: str, other_keys_pem: bytes = b"",
        other_issuers: Sequence[str] = (), most_seconds: int = 0,
    ) -> None:  # fmt: skip
        """The other keys and issuers only verify: what was signed before they were replaced."""
        self.issuer, self.most_seconds = issuer, most_seconds
        self._key_pem, self._other_keys_pem = key_pem, other_keys_pem
        checker = TokenChecker((issuer, *other_issuers), self._candidates)
        self.issued, self.claims = checker.issued, checker.claims
        if other_keys_pem:
            _ = self._keys  # somebody else's file: what is wrong with it is told at once

    @cached_property
    def _key(self) -> "SigningKey":
        # Read with the first token: a start has no time for cryptography.
        from sampan.apiserver.authn.jwt_keys import SigningKey

        return SigningKey(self._key_pem)

    @cached_property
    def _keys(self) -> "dict[str, VerifyingKey]":
        from sampan.apiserver.authn.jwt_keys import verifying_keys

        keys = [self._key.public, *verifying_keys(self._other_keys_pem)]
        return {key.key_id: key for key in reversed(keys)}

    def _candidates(self, key_id: str) -> "Sequence[VerifyingKey]":
        named = self._keys.get(key_id)
        return list(self._keys.values()) if named is None else [named]

    @property
    def longest_seconds(self) -> int:
        return 0

    async def start(self) -> None:
        """The key is read with the first token."""

    async def keep_going(self) -> None:
        """It has all it needs."""

    async def close(self) -> None:
        """Nobody is at the other end."""

    @property
    def algorithms(self) -> list[str]:
        return [self._key.algorithm]

    @property
    def key_id(self) -> str:
        return self._key.public.key_id

    def token(self, claims: Claims, now: float, token_id: str) -> str:
        return self._sign(token_body(claims, self.issuer, int(now), token_id))

    def legacy_token(self, namespace: str, account: str, uid: str, secret: str) -> str:
        """For a secret of type kubernetes.io/service-account-token."""
        start = "kubernetes.io/serviceaccount/"
        return self._sign(
            {
                "iss": _LEGACY_ISSUER,
                f"{start}namespace": namespace,
                f"{start}secret.name": secret,
                f"{start}service-account.name": account,
                f"{start}service-account.uid": uid,
                "sub": f"{PREFIX}{namespace}:{account}",
            }
        )

    async def fetch_keys(self) -> None:
        """All of them are known."""

    def keys_last_seconds(self) -> int:
        return 3600

    def public_jwks(self) -> list[Obj]:
        return [key.jwk() for key in reversed(self._keys.values())]

    def _sign(self, body: Obj) -> str:
        header = {"alg": self._key.algorithm, "kid": self.key_id}
        signed = f"{base64url(orjson.dumps(header))}.{base64url(orjson.dumps(body))}"
        return f"{signed}.{base64url(self._key.signature(signed.encode()))}"


def token_body(claims: Claims, issuer: str, now: int, token_id: str) -> Obj:
    inner: Obj = {"namespace": claims.namespace}
    if claims.bound_kind:
        inner[claims.bound_kind] = {"name": claims.bound_name, "uid": claims.bound_uid}
    if claims.node_name:
        inner["node"] = {"name": claims.node_name}
        if claims.node_uid:
            inner["node"]["uid"] = claims.node_uid
    inner["serviceaccount"] = {"name": claims.service_account, "uid": claims.service_account_uid}
    if claims.warn_after:
        inner["warnafter"] = claims.warn_after
    return {
        "aud": list(claims.audiences),
        "exp": claims.expires,
        "iat": now,
        "iss": issuer,
        "jti": token_id,
        "kubernetes.io": inner,
        "nbf": now,
        "sub": f"{PREFIX}{claims.namespace}:{claims.service_account}",
    }


def _quoted(words: Sequence[str]) -> str:
    """As Go prints a list of texts."""
    return f"[{' '.join(orjson.dumps(word).decode() for word in words)}]"


def checked_user(
    claims: Claims, audiences: Sequence[str], lookup: Lookup, now: float, token: str = ""
) -> User:
    """The service account, if the token is meant for us and what it is bound to still lives."""
    if claims.legacy_secret:
        _check_legacy(claims, lookup, token)
    elif not set(audiences) & set(claims.audiences):
        meant, wanted = (_quoted(each) for each in (claims.audiences, audiences))
        raise BadToken(f"token audiences {meant} is invalid for the target audiences {wanted}")
    account = lookup("serviceaccounts", claims.namespace, claims.service_account)
    if account is None or uid_of(account) != claims.service_account_uid:
        raise BadToken("the service account of the token has been deleted")
    if _is_long_deleted(account, now):
        raise BadToken("the service account of the token has been deleted")
    if claims.bound_kind:
        _check_bound(claims, lookup, now)
    groups = (ACCOUNTS_GROUP, f"{ACCOUNTS_GROUP}:{claims.namespace}")
    name = f"{PREFIX}{claims.namespace}:{claims.service_account}"
    return User(name, groups, claims.service_account_uid, _extra(claims))


def _check_bound(claims: Claims, lookup: Lookup, now: float) -> None:
    namespace = "" if claims.bound_kind == "node" else claims.namespace
    bound = lookup(f"{claims.bound_kind}s", namespace, claims.bound_name)
    if bound is None or uid_of(bound) != claims.bound_uid:
        raise BadToken(f"the {claims.bound_kind} that the token is bound to has been deleted")
    if _is_long_deleted(bound, now):
        raise BadToken(f"the {claims.bound_kind} that the token is bound to has been deleted")


def _is_long_deleted(obj: Obj, now: float) -> bool:
    """It may be there for long, with a finalizer; what speaks for it may not."""
    deleted: str = meta_of(obj).get("deletionTimestamp") or ""
    return bool(deleted) and now > seconds_of(deleted) + _DELETED_LEEWAY_SECONDS


def _check_legacy(claims: Claims, lookup: Lookup, token: str) -> None:
    secret = lookup("secrets", claims.namespace, claims.legacy_secret)
    if secret is None or meta_of(secret).get("deletionTimestamp"):
        raise BadToken("Token has been invalidated")
    try:
        kept = b64decode((secret.get("data") or {}).get("token") or "")
    except NotBase64:
        kept = b""
    if not kept or not hmac.compare_digest(kept, token.encode()):
        raise BadToken("Token does not match server's copy")
    if labels_of(secret).get(INVALID_SINCE):
        where = f"{claims.namespace}/{claims.legacy_secret}"
        account = f"{claims.namespace}/{claims.service_account}"
        raise InvalidatedToken(
            f"the token in secret {where} for service account {account} has been marked invalid. "
            "Use tokens from the TokenRequest API or manually created secret-based tokens, or "
            f"remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this "
            "token"
        )


def _extra(claims: Claims) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    if claims.bound_kind in ("pod", "node"):
        extra[f"{_EXTRA}{claims.bound_kind}-name"] = (claims.bound_name,)
        extra[f"{_EXTRA}{claims.bound_kind}-uid"] = (claims.bound_uid,)
    if claims.node_name:
        extra[f"{_EXTRA}node-name"] = (claims.node_name,)
        if claims.node_uid:
            extra[f"{_EXTRA}node-uid"] = (claims.node_uid,)
    if claims.token_id:
        extra[f"{_EXTRA}credential-id"] = (f"JTI={claims.token_id}",)
    return extra


def _claims_of(body: Any, issuers: frozenset[str]) -> Claims:
    inner = body.get("kubernetes.io")
    if not isinstance(inner, dict) or body.get("iss") not in issuers:
        raise BadToken("the token was not issued by this cluster")
    bound = next((kind for kind in ("pod", "secret", "node") if inner.get(kind)), "")
    try:
        account = _reference(inner, "serviceaccount")
        reference = _reference(inner, bound)
        node = _reference(inner, "node") if bound == "pod" else ("", "")
        audiences = body.get("aud") or ()
        return Claims(
            audiences=(audiences,) if isinstance(audiences, str) else tuple(audiences),
            expires=int(body.get("exp") or 0),
            namespace=str(inner.get("namespace") or ""),
            service_account=account[0],
            service_account_uid=account[1],
            bound_kind=bound,
            bound_name=reference[0],
            bound_uid=reference[1],
            node_name=node[0],
            node_uid=node[1],
            token_id=str(body.get("jti") or ""),
            not_before=int(body.get("nbf") or 0),
            warn_after=int(inner.get("warnafter") or 0),
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise BadToken("the token is malformed") from error


def _reference(inner: Any, kind: str) -> tuple[str, str]:
    """Name and uid of what a claim refers to; empty where it does not."""
    found = inner.get(kind) or {}
    return str(found.get("name") or ""), str(found.get("uid") or "")


def _legacy_claims_of(body: Any) -> Claims:
    start = "kubernetes.io/serviceaccount/"
    fields = ("namespace", "service-account.name", "service-account.uid", "secret.name")
    namespace, account, uid, secret = (str(body.get(f"{start}{field}") or "") for field in fields)
    if not (namespace and account and uid and secret):
        raise BadToken("the token is malformed")
    return Claims((), 0, namespace, account, uid, legacy_secret=secret)
