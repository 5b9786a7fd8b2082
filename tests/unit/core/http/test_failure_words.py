"""core/http/failure_words.py: what operators read in conditions and events."""

import errno
import ssl

import pytest

from sampan.core.http.errors import HttpError, HttpTimeout
from sampan.core.http.failure_words import failure_words


def because(error, cause):
    error.__cause__ = cause
    return failure_words(error)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ECONNREFUSED, "dial tcp 10.0.0.1:443: connect: connection refused"),
        (errno.EHOSTUNREACH, "dial tcp 10.0.0.1:443: connect: no route to host"),
    ],
)
def test_a_connection_that_is_not_made(code, words):
    assert because(HttpError("dial 10.0.0.1:443: whatever"), OSError(code, "x")) == words


def test_a_certificate_that_is_not_believed():
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = 20, "unable to get local issuer certificate"
    told = because(HttpError("dial x: y"), error)
    assert told == (
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    )
    error.verify_code = 62
    error.verify_message = "Hostname mismatch, certificate is not valid for 'tea.default.svc'."
    told = because(HttpError("dial x: y"), error)
    assert told.endswith("x509: certificate is not valid for 'tea.default.svc'")


def test_no_answer_in_time_and_none_at_all():
    assert failure_words(HttpTimeout("GET x: no answer within 1 s")) == "context deadline exceeded"
    assert failure_words(HttpError("the server closed the connection")) == "EOF"
    assert failure_words(HttpError("odd")) == "odd"
