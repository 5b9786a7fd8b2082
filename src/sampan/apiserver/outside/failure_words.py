"""Why another server could not be asked, or refused, in the words that operators know.

Job: an HttpError → what Go's network stack says, which stands after `Get "https://…": `; a status
    and a body → what Kubernetes' clients make of them. Pure.
"""

import errno
import ssl

from sampan.core.http.errors import HttpError, HttpTimeout

_CONNECT = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
}
_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})  # OpenSSL's codes: nobody we trust signed it
_EXPIRED, _OTHER_NAME, _OTHER_ADDRESS = 10, 62, 64


def failure_words(error: OSError) -> str:
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_certificate(cause)}"
    if isinstance(error, HttpTimeout):
        return "context deadline exceeded"
    where = str(error).partition(": ")[0]
    if isinstance(cause, OSError) and where.startswith("dial ") and cause.errno in _CONNECT:
        return f"dial tcp {where[5:]}: connect: {_CONNECT[cause.errno]}"
    if isinstance(error, HttpError) and str(error) == "the server closed the connection":
        return "EOF"
    return str(error)


_REFUSALS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be "
         "processing the request",
}  # fmt: skip


def refusal_words(code: int, body: str) -> str:
    """As apimachinery's NewGenericServerResponse."""
    if code == 403:
        return body
    if code in _REFUSALS:
        return _REFUSALS[code]
    if code >= 500:
        quoted = body.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'an error on the server ("{quoted}") has prevented the request from succeeding'
    return f"the server responded with the status code {code} but did not return more information"


def _certificate(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if error.verify_code == _EXPIRED:
        return "certificate has expired or is not yet valid"
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        # OpenSSL: Hostname mismatch, certificate is not valid for 'NAME'.
        return error.verify_message.partition(", ")[2].rstrip(".") or error.verify_message
    return error.verify_message
