"""Request header authentication: the user that an authenticating proxy names.

Job: believe the headers of a proxy, and of nobody else.
Invariant: a header counts only beside a certificate that the proxies' own CA has signed.
Invariant: one header line names one group: a comma is part of its name, as upstream.
"""

from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from sampan.apiserver.authn.certificate import user_of
from sampan.apiserver.authn.settings import FrontProxySettings
from sampan.apiserver.authn.user import User
from sampan.core.bounded import Bounded
from sampan.core.http.messages import Request

MOST = 256


class Issued:
    """Whether a certificate was signed by one of these CAs; remembered by the whole certificate."""

    def __init__(self, ca_pem: bytes) -> None:
        self._authorities = x509.load_pem_x509_certificates(ca_pem)
        self._known: Bounded[bytes, bool] = Bounded(MOST)

    def __call__(self, certificate_der: bytes) -> bool:
        known = self._known.get(certificate_der)
        if known is None:
            known = self._known[certificate_der] = self._check(certificate_der)
        return known

    def _check(self, certificate_der: bytes) -> bool:
        certificate = x509.load_der_x509_certificate(certificate_der)
        for authority in self._authorities:
            try:
                certificate.verify_directly_issued_by(authority)
            except (ValueError, TypeError, InvalidSignature):
                continue
            return True
        return False


class FrontProxy:
    def __init__(self, settings: FrontProxySettings) -> None:
        self._settings = settings
        self._issued = Issued(settings.ca_pem)

    def user(self, request: Request, certificate_der: bytes) -> User | None:
        """None: no proxy, or it names nobody."""
        settings = self._settings
        name = _first(request, settings.user_headers)
        if not name or not self._issued(certificate_der):
            return None
        allowed = settings.allowed_names
        if allowed and user_of(certificate_der).name not in allowed:
            return None
        groups = [
            item for header in settings.group_headers for item in request.values(header) if item
        ]
        return User(
            name, tuple(groups), _first(request, settings.uid_headers), self._extra(request)
        )

    def _extra(self, request: Request) -> dict[str, tuple[str, ...]]:
        return {
            unquote(name[len(prefix) :]): tuple(request.values(name))
            for name in request.headers
            for prefix in self._settings.extra_prefixes
            if name.startswith(prefix)
        }


def _first(request: Request, names: tuple[str, ...]) -> str:
    """Of several lines the first counts, as in Go."""
    found = (line.strip() for name in names for line in request.values(name)[:1])
    return next((line for line in found if line), "")
