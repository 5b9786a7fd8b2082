"""Discovery by CA pin: a machine that knows only a fingerprint comes to trust a cluster.

Job: the fingerprint of an authority, as kubeadm's; the authority's certificate from the server's
    handshake, if it has that fingerprint.
Invariant: nothing secret is sent before the fingerprint was found right.
"""

import hashlib
import hmac
import socket
import ssl
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from sampan.cmd.errors import CannotStart, reason_of
from sampan.core.tls import shown_chain

PREFIX = "sha256:"
CONNECT_SECONDS = 10.0


def fingerprint(certificate_pem: bytes) -> str:
    """Of the public key: a renewed certificate for the same key keeps it."""
    certificate = x509.load_pem_x509_certificate(certificate_pem)
    spki = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return PREFIX + hashlib.sha256(spki).hexdigest()


def authority_of(url: str, wanted: str) -> bytes:
    """PEM. Raises CannotStart where nobody answers, or somebody else does."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise CannotStart(f"{url} is no https address of an API server")
    try:
        chain = _chain(parts.hostname, parts.port or 443)
    except OSError as error:
        raise CannotStart(
            f"no API server answers at {url} ({reason_of(error)}): does it run, and is the address "
            "right?"
        ) from error
    for pem in chain:
        if hmac.compare_digest(fingerprint(pem), wanted):
            return pem
    raise CannotStart(
        f"the server at {url} is not the one that --ca-hash is of: it shows "
        f"{', '.join(fingerprint(pem) for pem in chain)}"
    )


def _chain(host: str, port: int) -> list[bytes]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((host, port), CONNECT_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname=host) as wrapped,
    ):
        return [ssl.DER_cert_to_PEM_cert(der).encode() for der in shown_chain(wrapped)]
