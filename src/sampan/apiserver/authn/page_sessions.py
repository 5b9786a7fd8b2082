"""Logging in to the page: codes that are good once, and the sessions that they are exchanged for.

Job: whoever has shown a credential gets a code; the code becomes a session; a session stands for
    the credential with which its code was asked for.
Invariant: a code works once and for CODE_SECONDS; a session ends with its credential at the
    latest; neither begets another.
Invariant: only digests are kept, and only so many: the oldest goes first. Nothing is stored.
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
SESSION_PREFIX = "sampan-page-"


@dataclass(frozen=True, slots=True)
class Credential:
    """What somebody showed. A token is looked at again with each use: revoked is revoked."""

    certificate: bytes | None = None  # DER, as verified
    authorization: str = ""  # the header
    ends: float = 0.0


@dataclass(frozen=True, slots=True)
class Session:
    token: str
    ends: float


class PageSessions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: Recent[bytes, tuple[float, Credential]] = Recent(MOST_CODES)
        self._sessions: Recent[bytes, Credential] = Recent(MOST_SESSIONS)

    def make_code(self, credential: Credential) -> str:
        code = secrets.token_urlsafe(32)
        self._codes[_digest(code)] = (self._clock.now() + CODE_SECONDS, credential)
        return code

    def exchange(self, code: str) -> Session | None:
        """None: it was used, is too old, or never was."""
        found = self._codes.pop(_digest(code), None)
        now = self._clock.now()
        if found is None or found[0] < now or found[1].ends <= now:
            return None
        token = SESSION_PREFIX + secrets.token_urlsafe(32)
        self._sessions[_digest(token)] = found[1]
        return Session(token, found[1].ends)

    def credential(self, token: str) -> Credential | None:
        found = self._sessions.get(_digest(token))
        if found is not None and found.ends <= self._clock.now():
            self.forget(token)
            return None
        return found

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


def is_session(token: str) -> bool:
    return token.startswith(SESSION_PREFIX)


def _end_of(certificate: bytes) -> float:
    from cryptography import x509

    return x509.load_der_x509_certificate(certificate).not_valid_after_utc.timestamp()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
