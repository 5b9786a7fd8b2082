"""Go's messages of a failed request: refused, no such host, timed out, untrusted.

Job: an HttpError → what Go's network stack says, which stands after `Get "https://…": `. Pure.
"""

import errno
import socket
import ssl

from sampan.core.certificates.refusal import CertificateRefused
from sampan.core.http.errors import HttpError, HttpTimeout

_CONNECT = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
}
_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})  # OpenSSL's codes: nobody we trust signed it
# OpenSSL says so of a first record that is none: nearly all who answer that way speak HTTP.
NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST"})
PLAIN_ANSWER = "http: server gave HTTP response to HTTPS client"
_EXPIRED, _OTHER_NAME, _OTHER_ADDRESS = 10, 62, 64


def failure_words(error: OSError) -> str:
    cause = error.__cause__
    if isinstance(cause, CertificateRefused):
        text = str(cause)
        return text if text.startswith("tls: ") else f"tls: failed to verify certificate: {text}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_certificate(cause)}"
    if isinstance(error, HttpTimeout):
        return "context deadline exceeded"
    if isinstance(cause, ssl.SSLError) and cause.reason in NO_TLS:
        return PLAIN_ANSWER
    where = str(error).partition(": ")[0]
    if isinstance(cause, socket.gaierror) and where.startswith("dial "):
        return f"dial tcp: lookup {where[5:].rpartition(':')[0]}: no such host"
    if isinstance(cause, OSError) and where.startswith("dial ") and cause.errno in _CONNECT:
        return f"dial tcp {where[5:]}: connect: {_CONNECT[cause.errno]}"
    if isinstance(error, HttpError) and str(error) == "the server closed the connection":
        return "EOF"
    return str(error)


def _certificate(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if error.verify_code == _EXPIRED:
        return "certificate has expired or is not yet valid"
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        # OpenSSL: Hostname mismatch, certificate is not valid for 'NAME'.
        return error.verify_message.partition(", ")[2].rstrip(".") or error.verify_message
    return error.verify_message
