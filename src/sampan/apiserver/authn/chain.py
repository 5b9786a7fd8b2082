"""The chain of authenticators: who sent this request?

Job: client certificate, then bearer token, then anonymous where that is allowed.
Invariant: a request with bad credentials is 401; it never becomes anonymous.
"""

from sampan.api.errors import Unauthorized
from sampan.apiserver.authn.certificate import CertificateAuthenticator
from sampan.apiserver.authn.tokens import BadToken, Lookup, TokenSigner, checked_user
from sampan.apiserver.authn.user import ANONYMOUS, User, authenticated
from sampan.core.clock import Clock
from sampan.core.http import Request
from sampan.core.log import get_logger

log = get_logger(__name__)

# Anonymous callers may ask for these and for nothing else.
PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
# Whoever asks, whatever the authorization mode.
ALWAYS_ALLOWED_PATHS = frozenset({"/healthz", "/livez", "/readyz"})


class Authentication:
    def __init__(
        self,
        signer: TokenSigner | None,
        audiences: tuple[str, ...],
        lookup: Lookup,
        clock: Clock,
    ) -> None:
        self._certificates = CertificateAuthenticator()
        self._signer = signer
        self._audiences = audiences
        self._lookup = lookup
        self._clock = clock

    def user(self, request: Request) -> User:
        """Raises Unauthorized."""
        if request.peer_certificate is not None:
            user = self._certificates.user(request.peer_certificate)
            if user.name:
                return user
        header = request.headers.get("authorization")
        if header is not None:
            return self._bearer(header)
        if request.path in PUBLIC_PATHS:
            return ANONYMOUS
        raise Unauthorized("Unauthorized")

    def token_user(self, token: str, audiences: tuple[str, ...] = ()) -> User:
        """Raises BadToken."""
        if self._signer is None:
            raise BadToken("this server issues no tokens")
        claims = self._signer.claims(token, self._clock.now())
        return authenticated(checked_user(claims, audiences or self._audiences, self._lookup))

    def _bearer(self, header: str) -> User:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthorized("Unauthorized")
        try:
            return self.token_user(token.strip())
        except BadToken as error:
            log.info("token refused", why=str(error))
            raise Unauthorized("Unauthorized") from error
