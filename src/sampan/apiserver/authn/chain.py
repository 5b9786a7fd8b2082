"""The chain of authenticators: the user of a request.

Job: the word of a listener that knows its callers, proxy headers, client certificate, bearer token
    (in the order of docs/authentication.md), then anonymous where that is allowed. The first
    success wins.
Invariant: a request with bad credentials is 401; it never becomes anonymous.
Invariant: a browser shows its certificate whoever asks for something: it counts only for what our
    own pages ask for.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from sampan.api.errors import Unauthorized
from sampan.apiserver.authn.bootstrap_tokens import bootstrap_user
from sampan.apiserver.authn.certificate import CertificateAuthenticator
from sampan.apiserver.authn.page_sessions import Credential, PageSessions, is_session
from sampan.apiserver.authn.settings import PUBLIC_PATHS
from sampan.apiserver.authn.token_use import TokenUse
from sampan.apiserver.authn.tokens import (
    BadToken,
    Claims,
    InvalidatedToken,
    Lookup,
    Signer,
    UnknownKey,
    checked_user,
)
from sampan.apiserver.authn.user import ANONYMOUS, User, component, with_authenticated_group
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass, replace
from sampan.core.http.messages import Request
from sampan.core.http.websocket import is_websocket, protocols_of
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics

if TYPE_CHECKING:  # options.py loads what the settings ask for
    from sampan.apiserver.authn.front_proxy import FrontProxy
    from sampan.apiserver.authn.issuers import Issuers
    from sampan.apiserver.authn.token_file import TokenFile
    from sampan.apiserver.authn.webhook import TokenWebhook

log = get_logger(__name__)

MOST_PARTS = 16_384  # whose names are remembered: every node of a large cluster
# Whoever asks, whatever the authorization mode.
ALWAYS_ALLOWED_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
# Browsers cannot set headers on a WebSocket: as upstream, a token comes among its protocols.
WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."


@dataclass(frozen=True, slots=True)
class Authenticators:
    """What there is to ask, besides certificates; None or False: not this one."""

    signer: Signer | None = None
    token_file: "TokenFile | None" = None
    bootstrap_tokens: bool = False
    issuers: "Issuers | None" = None
    webhook: "TokenWebhook | None" = None
    front_proxy: "FrontProxy | None" = None
    is_client: Callable[[bytes], bool] | None = None  # None: the TLS layer has one CA only
    anonymous_paths: frozenset[str] | None = PUBLIC_PATHS  # None: every path; empty: none
    sessions: PageSessions | None = None  # None: there is no page


async def _claims(signer: Signer, token: str, now: float) -> Claims:
    """Raises BadToken."""
    try:
        return signer.claims(token, now)
    except UnknownKey:
        await signer.fetch_keys()
        return signer.claims(token, now)


class Authentication:
    def __init__(
        self,
        authenticators: Authenticators,
        audiences: tuple[str, ...],
        lookup: Lookup,
        clock: Clock,
        metrics: Metrics | None = None,
    ) -> None:
        self._certificates = CertificateAuthenticator()
        self._with = authenticators
        self._audiences = audiences
        self._lookup = lookup
        self._used = TokenUse(metrics)
        self._clock = clock

    def when_legacy_used(self, listener: Callable[[str, str], None]) -> None:
        """Called with the namespace and name of a secret whose token was shown."""
        self._used.listener = listener

    async def user(self, request: Request) -> User:
        """Raises Unauthorized."""
        if request.caller:
            return _part_of_the_cluster(request.caller)
        if request.peer_certificate is not None:
            user = self._by_certificate(request, request.peer_certificate)
            if user is not None:
                return user
        header = request.headers.get("authorization") or _websocket_token(request)
        if header is not None:
            return await self._bearer(header)
        public = self._with.anonymous_paths
        if public is None or request.path in public:
            return ANONYMOUS
        raise Unauthorized("Unauthorized")

    async def login_code(self, request: Request, user: User) -> str | None:
        """For the page. None where what was shown is not the user's own to keep: a proxy's
        certificate, a session, or the word of somebody who acts for the user."""
        sessions = self._with.sessions
        credential = None if sessions is None else sessions.credential_in(request)
        if sessions is None or credential is None or await self._user_of(credential) != user:
            return None
        return sessions.make_code(replace(credential, user=user.name))

    async def reviewed_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> tuple[User, list[str]]:
        """Whose it is, and for which of the audiences it is good. Raises BadToken."""
        user, wanted = await self.token_user(token, audiences), audiences or self._audiences
        good: tuple[str, ...] = self._audiences
        signer = self._with.signer
        if signer is not None and token.count(".") == 2 and signer.issued(token):
            claims = await _claims(signer, token, self._clock.now())
            good = good if claims.legacy_secret else tuple(claims.audiences)
        # A webhook that takes a token for others than us has said so itself.
        return user, [each for each in wanted if each in good] or list(wanted)

    async def token_user(self, token: str, audiences: tuple[str, ...] = ()) -> User:
        """Raises BadToken."""
        wanted = audiences or self._audiences
        troubles: list[str] = []
        for ask in (self._local, self._outside):
            try:
                user = await ask(token, wanted)
            except BadToken as error:
                troubles.append(str(error))
                continue
            if user is not None:
                return with_authenticated_group(user)
        raise BadToken(", ".join(troubles))

    def _by_certificate(self, request: Request, certificate: bytes) -> User | None:
        proxy, is_client = self._with.front_proxy, self._with.is_client
        if proxy is not None:
            user = proxy.user(request, certificate)
            if user is not None:
                return with_authenticated_group(user)
        if is_client is not None and not is_client(certificate):
            return None  # a proxy that names nobody is nobody itself
        user = self._certificates.user(certificate)
        if not is_own_page(request):
            raise Unauthorized("Unauthorized")
        return user if user.name else None

    async def _local(self, token: str, audiences: tuple[str, ...]) -> User | None:
        """Static tokens, service accounts, bootstrap tokens: what this server knows itself."""
        with_, is_for_us = self._with, self._is_for_us(audiences)
        if with_.token_file is not None and is_for_us:
            user = with_.token_file.user(token)
            if user is not None:
                return user
        signer, now = with_.signer, self._clock.now()
        if signer is not None and token.count(".") == 2 and signer.issued(token):
            claims = await _claims(signer, token, now)
            if claims.legacy_secret and not is_for_us:
                return None
            try:
                user = checked_user(claims, audiences, self._lookup, now, token)
            except InvalidatedToken:
                self._used.refused_legacy(claims)
                raise
            self._used.noted(claims, user, now)
            if claims.legacy_secret:
                where = (claims.namespace, claims.service_account)
                self._used.noted_legacy(claims, self._lookup("serviceaccounts", *where))
            return user
        if with_.bootstrap_tokens and is_for_us:
            return bootstrap_user(token, self._lookup, now)
        return None

    async def _outside(self, token: str, audiences: tuple[str, ...]) -> User | None:
        with_ = self._with
        if with_.issuers is not None and self._is_for_us(audiences):
            user = await with_.issuers.user(token)
            if user is not None:
                return user
        if with_.webhook is not None:
            return await with_.webhook.user(token, audiences)
        return None

    def _is_for_us(self, audiences: tuple[str, ...]) -> bool:
        """What names no audience is good for this server, and for nobody else."""
        return not self._audiences or bool(set(audiences) & set(self._audiences))

    async def _bearer(self, header: str) -> User:
        scheme, _, token = header.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized("Unauthorized")
        if is_session(token):
            return await self._session_user(token)
        try:
            return await self.token_user(token)
        except BadToken as error:
            log.info("token refused", why=str(error))
            raise Unauthorized("Unauthorized") from error

    async def _session_user(self, token: str) -> User:
        """Whose credential it stands for, if that is still good."""
        sessions = self._with.sessions
        credential = None if sessions is None else sessions.credential(token)
        if credential is None:
            raise Unauthorized("Unauthorized")
        return await self._user_of(credential)

    async def _user_of(self, credential: Credential) -> User:
        """Raises Unauthorized."""
        if credential.certificate is None:
            return await self._bearer(credential.authorization)
        return self._certificates.user(credential.certificate)


@lru_cache(MOST_PARTS)
def _part_of_the_cluster(name: str) -> User:
    return with_authenticated_group(component(name))


def is_own_page(request: Request) -> bool:
    """Whether no browser asks, or a page that was served from where it asks. What comes by way of a
    proxy (`kubectl proxy`) is the proxy's affair: no page can make a browser say that it does."""
    headers = request.headers
    origin = headers.get("origin")
    if origin is None or "x-forwarded-for" in headers or not _is_browser(headers):
        return True
    return origin.partition("://")[2].lower() == headers.get("host", "").lower()


def _is_browser(headers: Mapping[str, str]) -> bool:
    """Every browser of these years says from where it fetches, which no page can keep it from; the
    older ones are known by their name. Other programs may name an Origin, and mean nothing by it:
    libraries for WebSockets have to name one."""
    if "sec-fetch-site" in headers or "sec-fetch-mode" in headers:
        return True
    return headers.get("user-agent", "").startswith("Mozilla/")


def _websocket_token(request: Request) -> str | None:
    """As an authorization header; whoever passes the handshake on passes no token on."""
    offered = request.headers.get("sec-websocket-protocol")
    if offered is None or WEBSOCKET_TOKEN not in offered or not is_websocket(request):
        return None
    protocols = protocols_of(request)
    [*tokens] = [item for item in protocols if item.startswith(WEBSOCKET_TOKEN)]
    others = [item for item in protocols if not item.startswith(WEBSOCKET_TOKEN)]
    if len(tokens) != 1 or not others:
        raise Unauthorized("Unauthorized")  # as upstream: the handshake has to choose another
    encoded = tokens[0].removeprefix(WEBSOCKET_TOKEN)
    try:
        token = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise Unauthorized("Unauthorized") from error
    request.headers = {**request.headers, "sec-websocket-protocol": ", ".join(others)}
    return f"Bearer {token}"
