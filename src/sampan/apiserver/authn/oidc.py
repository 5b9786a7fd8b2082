"""JSON web tokens of issuers outside the cluster (OpenID Connect).

Job: find the issuer's keys, verify a token with them, and turn its claims into a user.
Invariant: no document and no token holds the loop: what is more than a few keys is read, and tried,
    beside it.
Invariant: keys come only from the issuer's own discovery document; a key that is not known makes
    us ask again, but not more often than every RETRY_SECONDS, and one at a time: who comes while
    somebody asks waits for the same answer.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson

from sampan.apiserver.authn.jwt import BadToken, Parsed
from sampan.apiserver.authn.jwt_keys import VerifyingKey, key_of_jwk
from sampan.apiserver.authn.settings import OidcSettings
from sampan.apiserver.authn.user import User
from sampan.core.clock import Clock
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.log import get_logger

if TYPE_CHECKING:
    from sampan.apiserver.authn.expressions import Expressions

log = get_logger(__name__)

RETRY_SECONDS = 10.0
TIMEOUT_SECONDS = 10.0
MOST_BYTES = 256 * 1024  # of a document
MOST_KEYS = 100  # each is tried, where a token does not say which it is
FEW_KEYS = 4  # take less than 5 ms to be tried, however long they are


class Oidc:
    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        """Raises ValueError where an expression cannot be compiled."""
        self._settings, self._clock = settings, clock
        self._expressions = _expressions(settings)
        self._keys: list[VerifyingKey] = []
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()
        self._http: HttpClient | None = None

    def issued(self, token: Parsed) -> bool:
        return token.body.get("iss") == self._settings.issuer

    async def user(self, token: Parsed) -> User:
        """Raises BadToken."""
        if token.header.get("alg") not in self._settings.algorithms:
            raise BadToken("oidc: the token is signed with an algorithm that is not allowed")
        if not await self._verify(token):
            async with self._asking:
                if not await self._verify(token):
                    await self._learn()
            if not await self._verify(token):
                raise BadToken("oidc: failed to verify signature: no keys matches jwk keyid")
        check_claims(token.body, self._settings, self._clock.now())
        user = user_of(token.body, self._settings, self._expressions)
        if self._expressions is not None:
            self._expressions.check_user(user)
        return user

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def _verify(self, token: Parsed) -> bool:
        named = token.header.get("kid")
        tried = [key for key in self._keys if not named or key.key_id == named]
        if len(tried) > FEW_KEYS:
            return await asyncio.to_thread(_is_signed, token, tried)
        return _is_signed(token, tried)

    async def _learn(self) -> None:
        now = self._clock.monotonic()
        if self._asked_at is not None and now < self._asked_at + RETRY_SECONDS:
            return
        self._asked_at = now
        issuer = self._settings.issuer.rstrip("/")
        own = f"{issuer}/.well-known/openid-configuration"
        discovery = await self._get(self._settings.discovery_url or own)
        if discovery.get("issuer") != self._settings.issuer:
            raise BadToken("oidc: the issuer's document names another issuer")
        keys = (await self._get(str(discovery.get("jwks_uri") or ""))).get("keys")
        self._keys = await asyncio.to_thread(_read, keys)

    async def _get(self, url: str) -> dict[str, Any]:
        if not url.startswith("https://"):
            raise BadToken(f"oidc: {url!r} is not https")
        if self._http is None:
            make = self._settings.tls or ssl.create_default_context
            self._http = HttpClient(ssl_context=make())
        try:
            answer = await self._http.request(
                "GET", url, timeout_seconds=TIMEOUT_SECONDS, most_bytes=MOST_BYTES
            )
            found = orjson.loads(answer.body) if answer.status == 200 else None
        except (HttpError, OSError, ValueError) as error:
            log.warning("the OIDC issuer cannot be asked", url=url, error=error)
            raise BadToken(f"oidc: the issuer cannot be asked: {error}") from error
        if not isinstance(found, dict):
            raise BadToken(f"oidc: the issuer answered with {answer.status}")
        return found


def _read(keys: Any) -> list[VerifyingKey]:
    """Of a key set's first MOST_KEYS, those that signatures can be checked with."""
    given = keys[:MOST_KEYS] if isinstance(keys, list) else ()
    read = (key_of_jwk(key) for key in given if isinstance(key, dict))
    return [key for key in read if key is not None]


def _is_signed(token: Parsed, keys: Iterable[VerifyingKey]) -> bool:
    """By one of them."""
    for key in keys:
        try:
            key.verify(token)
        except BadToken:
            continue
        return True
    return False


def check_claims(body: dict[str, Any], settings: OidcSettings, now: float) -> None:
    """Raises BadToken."""
    audiences = body.get("aud")
    given = [audiences] if isinstance(audiences, str) else audiences
    if not isinstance(given, list) or not any(audience in given for audience in settings.audiences):
        raise BadToken(f"oidc: expected audience {list(settings.audiences)} got {audiences!r}")
    expires, not_before = body.get("exp"), body.get("nbf")
    if not isinstance(expires, int | float) or now >= expires:
        raise BadToken("oidc: token is expired")
    if isinstance(not_before, int | float) and now + 60 < not_before:
        raise BadToken("oidc: token is not valid yet")
    for claim, value in settings.required_claims:
        if body.get(claim) != value:
            raise BadToken(f"oidc: required claim {claim} value does not match")


def user_of(
    body: dict[str, Any], settings: OidcSettings, expressions: "Expressions | None" = None
) -> User:
    """Raises BadToken."""
    if expressions is None:
        return User(_username(body, settings), _groups(body, settings), _uid(body, settings))
    from sampan.apiserver.authn.expressions import string_of, strings_of

    expressions.check_claims(body)
    if expressions.username is None:
        name = _username(body, settings)
    else:
        name = string_of(expressions.username, body)
        if not name:
            raise BadToken("oidc: empty username via CEL expression is not allowed")
    by = expressions.groups
    groups = _groups(body, settings) if by is None else strings_of(by, body)
    by_uid = expressions.uid
    uid = _uid(body, settings) if by_uid is None else string_of(by_uid, body)
    return User(name, groups, uid, expressions.extra(body))


def _username(body: dict[str, Any], settings: OidcSettings) -> str:
    claim = settings.username_claim
    name = body.get(claim)
    if not isinstance(name, str) or not name:
        raise BadToken(f"oidc: parse username claims {claim!r}: claim not present")
    if claim == "email" and body.get("email_verified", True) is not True:
        raise BadToken("oidc: email not verified")
    return _prefix(settings) + name


def _uid(body: dict[str, Any], settings: OidcSettings) -> str:
    found = body.get(settings.uid_claim) if settings.uid_claim else ""
    if not isinstance(found, str):
        raise BadToken(f"oidc: parse uid claim {settings.uid_claim!r}: not a text")
    return found


def _expressions(settings: OidcSettings) -> "Expressions | None":
    written = (
        settings.username_expression, settings.groups_expression, settings.uid_expression,
        settings.extra, settings.claim_rules, settings.user_rules,
    )  # fmt: skip
    if not any(written):
        return None
    from sampan.apiserver.authn.expressions import Expressions

    return Expressions(settings)


def _prefix(settings: OidcSettings) -> str:
    if settings.username_prefix:
        return "" if settings.username_prefix == "-" else settings.username_prefix
    return "" if settings.username_claim == "email" else f"{settings.issuer}#"


def _groups(body: dict[str, Any], settings: OidcSettings) -> tuple[str, ...]:
    found = body.get(settings.groups_claim) if settings.groups_claim else None
    groups = [found] if isinstance(found, str) else found or []
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise BadToken(f"oidc: parse groups claim {settings.groups_claim!r}: not a list of names")
    return tuple(settings.groups_prefix + group for group in groups)
