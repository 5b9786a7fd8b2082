"""controllers/access/csr_signing.py: what is approved is signed, as TLS wants it."""

import base64

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sampan.controllers.access import csr_signing
from sampan.controllers.access.csr_certificate import BACKDATED_SECONDS
from tests.support.manual_clock import ManualClock
from tests.support.parts.certificates import Authority

NOW = 1_900_000_000.0


def signed(usages, directory):
    """The certificate of an approved request, signed while the cluster lives in another year."""
    authority = Authority(directory)
    ca = csr_signing.Ca(authority.ca_path.read_bytes(), authority.ca_key_pem(), ManualClock(NOW))
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    built = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    pem = built.public_bytes(serialization.Encoding.PEM)
    csr = {
        "metadata": {"name": "jane"},
        "spec": {
            "signerName": "kubernetes.io/kube-apiserver-client",
            "request": base64.b64encode(pem).decode(),
            "usages": usages,
            "expirationSeconds": 3600,
        },
        "status": {"conditions": [{"type": "Approved", "status": "True"}]},
    }
    [update] = csr_signing.plan(csr, ca, 1_000_000_000.0).actions
    return x509.load_pem_x509_certificate(base64.b64decode(update.obj["status"]["certificate"]))


def test_its_dates_are_those_of_who_is_shown_it(tmp_path):
    certificate = signed(["client auth", "digital signature"], tmp_path)
    assert certificate.not_valid_after_utc.timestamp() == NOW + 3600
    assert certificate.not_valid_before_utc.timestamp() == NOW - BACKDATED_SECONDS


def test_key_usage_is_there_only_where_one_is_named(tmp_path):
    with_one = signed(["client auth", "digital signature"], tmp_path).extensions
    assert with_one.get_extension_for_class(x509.KeyUsage).value.digital_signature
    without = {type(item.value) for item in signed(["client auth"], tmp_path).extensions}
    assert x509.KeyUsage not in without
    assert x509.ExtendedKeyUsage in without
