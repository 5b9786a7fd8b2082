"""OpenID Connect: tokens of an issuer outside the cluster.

Job: find the issuer's keys, verify a token with them, and turn its claims into a user.
Invariant: keys come only from the issuer's own discovery document; a key that is not known makes
    us ask again, but not more often than every RETRY_SECONDS.
"""

import ssl
from collections.abc import Callable
from typing import Any

import orjson

from sampan.apiserver.authn.jwt import BadToken, Parsed, VerifyingKey, key_of_jwk
from sampan.apiserver.authn.user import User
from sampan.core.clock import Clock
from sampan.core.http_client import HttpClient, HttpError
from sampan.core.log import get_logger
from sampan.core.records import dataclass

log = get_logger(__name__)

RETRY_SECONDS = 10.0
TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class OidcSettings:
    issuer: str
    client_id: str
    tls: Callable[[], ssl.SSLContext] | None = None
    username_claim: str = "sub"
    username_prefix: str = ""  # "-": none; empty: upstream's default
    groups_claim: str = ""
    groups_prefix: str = ""
    required_claims: tuple[tuple[str, str], ...] = ()
    algorithms: tuple[str, ...] = ("RS256",)


class Oidc:
    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._keys: list[VerifyingKey] = []
        self._asked_at: float | None = None
        self._http: HttpClient | None = None

    def issued(self, token: Parsed) -> bool:
        return token.body.get("iss") == self._settings.issuer

    async def user(self, token: Parsed) -> User:
        """Raises BadToken."""
        if token.header.get("alg") not in self._settings.algorithms:
            raise BadToken("oidc: the token is signed with an algorithm that is not allowed")
        if not self._verified(token):
            await self._learn()
            if not self._verified(token):
                raise BadToken("oidc: failed to verify signature: no keys matches jwk keyid")
        check_claims(token.body, self._settings, self._clock.now())
        return user_of(token.body, self._settings)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    def _verified(self, token: Parsed) -> bool:
        named = token.header.get("kid")
        for key in self._keys:
            if named and key.key_id and key.key_id != named:
                continue
            try:
                key.verify(token)
            except BadToken:
                continue
            return True
        return False

    async def _learn(self) -> None:
        now = self._clock.monotonic()
        if self._asked_at is not None and now < self._asked_at + RETRY_SECONDS:
            return
        self._asked_at = now
        where = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        discovery = await self._get(where)
        if discovery.get("issuer") != self._settings.issuer:
            raise BadToken("oidc: the issuer's document names another issuer")
        keys = (await self._get(str(discovery.get("jwks_uri") or ""))).get("keys")
        known = [key_of_jwk(one) for one in keys or () if isinstance(one, dict)]
        self._keys = [one for one in known if one is not None]

    async def _get(self, url: str) -> dict[str, Any]:
        if not url.startswith("https://"):
            raise BadToken(f"oidc: {url!r} is not https")
        if self._http is None:
            make = self._settings.tls or ssl.create_default_context
            self._http = HttpClient(ssl_context=make())
        try:
            answer = await self._http.request("GET", url, timeout_seconds=TIMEOUT_SECONDS)
            found = orjson.loads(answer.body) if answer.status == 200 else None
        except (HttpError, OSError, ValueError) as error:
            log.warning("the OIDC issuer cannot be asked", url=url, error=error)
            raise BadToken(f"oidc: the issuer cannot be asked: {error}") from error
        if not isinstance(found, dict):
            raise BadToken(f"oidc: the issuer answered with {answer.status}")
        return found


def check_claims(body: dict[str, Any], settings: OidcSettings, now: float) -> None:
    """Raises BadToken."""
    audiences = body.get("aud")
    if settings.client_id not in ([audiences] if isinstance(audiences, str) else audiences or ()):
        raise BadToken(f"oidc: expected audience {settings.client_id!r} got {audiences!r}")
    expires, not_before = body.get("exp"), body.get("nbf")
    if not isinstance(expires, int | float) or now >= expires:
        raise BadToken("oidc: token is expired")
    if isinstance(not_before, int | float) and now + 60 < not_before:
        raise BadToken("oidc: token is not valid yet")
    for claim, value in settings.required_claims:
        if body.get(claim) != value:
            raise BadToken(f"oidc: required claim {claim} value does not match")


def user_of(body: dict[str, Any], settings: OidcSettings) -> User:
    """Raises BadToken."""
    claim = settings.username_claim
    name = body.get(claim)
    if not isinstance(name, str) or not name:
        raise BadToken(f"oidc: parse username claims {claim!r}: claim not present")
    if claim == "email" and body.get("email_verified", True) is not True:
        raise BadToken("oidc: email not verified")
    return User(_prefix(settings) + name, tuple(_groups(body, settings)))


def _prefix(settings: OidcSettings) -> str:
    if settings.username_prefix:
        return "" if settings.username_prefix == "-" else settings.username_prefix
    return "" if settings.username_claim == "email" else f"{settings.issuer}#"


def _groups(body: dict[str, Any], settings: OidcSettings) -> list[str]:
    found = body.get(settings.groups_claim) if settings.groups_claim else None
    groups = [found] if isinstance(found, str) else found or []
    if not isinstance(groups, list) or not all(isinstance(one, str) for one in groups):
        raise BadToken(f"oidc: parse groups claim {settings.groups_claim!r}: not a list of names")
    return [settings.groups_prefix + one for one in groups]
