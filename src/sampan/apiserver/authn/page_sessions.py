"""Logging in to the page: codes that are good once, and the sessions that they are exchanged for.

Job: whoever has shown a credential gets a code; the code becomes a session; a session stands for
    the credential with which its code was asked for.
Invariant: a code works once and for CODE_SECONDS; a session ends with its credential at the
    latest; neither begets another.
Invariant: only digests are kept, and only so many: the oldest goes first, and of one user's before
    anybody else's. Nothing is stored.
Owner: the API server; another server of the cluster knows nothing of them.
"""

import hashlib
import secrets

from sampan.core.bounded import Recent
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Request

CODE_SECONDS = 60.0
SESSION_SECONDS = 8 * 3600.0
MOST_CODES, MOST_SESSIONS = 256, 1024
MOST_OF_ONE = 16  # of each
SESSION_PREFIX = "sampan-page-"


@dataclass(frozen=True, slots=True)
class Credential:
    """What somebody showed. A token is looked at again with each use: revoked is revoked."""

    certificate: bytes | None = None  # DER, as verified
    authorization: str = ""  # the header
    ends: float = 0.0
    user: str = ""  # whose it is


@dataclass(frozen=True, slots=True)
class Session:
    token: str
    ends: float


class PageSessions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: Recent[bytes, tuple[Credential, float]] = Recent(MOST_CODES)
        self._sessions: Recent[bytes, tuple[Credential, float]] = Recent(MOST_SESSIONS)

    def make_code(self, credential: Credential) -> str:
        code = secrets.token_urlsafe(32)
        _keep(self._codes, code, credential, self._clock.now() + CODE_SECONDS)
        return code

    def exchange(self, code: str) -> Session | None:
        """None: it was used, is too old, or never was."""
        found = self._codes.pop(_digest(code), None)
        now = self._clock.now()
        if found is None or found[1] < now or found[0].ends <= now:
            return None
        token, credential = SESSION_PREFIX + secrets.token_urlsafe(32), found[0]
        _keep(self._sessions, token, credential, credential.ends)
        return Session(token, credential.ends)

    def credential(self, token: str) -> Credential | None:
        found = self._sessions.get(_digest(token))
        if found is None:
            return None
        credential, ends = found
        if ends <= self._clock.now():
            self.forget(token)
            return None
        return credential

    def forget(self, token: str) -> None:
        self._sessions.pop(_digest(token), None)

    def credential_in(self, request: Request) -> Credential | None:
        """None where the request shows nothing that could be kept, or a session."""
        ends = self._clock.now() + SESSION_SECONDS
        if request.peer_certificate is not None:
            certificate = request.peer_certificate
            return Credential(certificate, "", min(ends, _end_of(certificate)))
        header = request.headers.get("authorization", "")
        if not header or is_session(header.partition(" ")[2].strip()):
            return None
        return Credential(None, header, ends)


def _keep(
    kept: Recent[bytes, tuple[Credential, float]], secret: str, credential: Credential, ends: float
) -> None:
    own = [key for key, (other, _) in kept.items() if other.user == credential.user]
    if len(own) >= MOST_OF_ONE:
        del kept[own[0]]
    kept[_digest(secret)] = (credential, ends)


def is_session(token: str) -> bool:
    return token.startswith(SESSION_PREFIX)


def _end_of(certificate: bytes) -> float:
    from cryptography import x509

    return x509.load_der_x509_certificate(certificate).not_valid_after_utc.timestamp()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
