"""How long a certificate request is kept."""

import base64
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.api.objects import time_text
from sampan.controllers.access.csr_cleaner import plan
from sampan.controllers.actions import Delete

NOW = 1_800_000_000.0
HOUR = 3600.0


def certificate(seconds):
    """One that is good for so long from now on."""
    key = ec.generate_private_key(ec.SECP256R1())
    ends = datetime.datetime.fromtimestamp(NOW + seconds, datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(x509.Name([]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(ends - datetime.timedelta(days=9))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(built.public_bytes(serialization.Encoding.PEM)).decode()


def csr(*conditions, age=0.0, **status):
    listed = [{"type": kind, "lastUpdateTime": time_text(NOW - ago)} for kind, ago in conditions]
    meta = {"name": "c", "uid": "u", "creationTimestamp": time_text(NOW - age)}
    return {"metadata": meta, "status": {"conditions": listed, **status}}


@pytest.mark.parametrize(
    ("request_", "kept_seconds"),
    [
        (csr(), 24 * HOUR),
        (csr(age=25 * HOUR), 0),
        (csr(("Denied", 0)), HOUR),
        (csr(("Failed", 2 * HOUR)), 0),
        (csr(("Approved", 0), age=30 * HOUR), 24 * HOUR),  # its signer may take its time
        (csr(("Approved", 2 * HOUR)), 22 * HOUR),
        (csr(("Approved", 25 * HOUR)), 0),
        (csr(("Approved", 0), certificate=certificate(9 * HOUR)), HOUR),
        (csr(("Approved", 0), certificate=certificate(600)), 600),
        (csr(("Approved", 0), certificate=certificate(-1)), 0),
        (csr(("Approved", 2 * HOUR), certificate=certificate(9 * HOUR)), 0),
        (csr(("Approved", 0), certificate="bm90IGEgY2VydGlmaWNhdGU="), HOUR),
    ],
)
def test_how_long_it_is_kept(request_, kept_seconds):
    found = plan(request_, NOW)
    if kept_seconds:
        assert (list(found.actions), found.again_seconds) == ([], kept_seconds)
    else:
        assert [type(action) for action in found.actions] == [Delete]
