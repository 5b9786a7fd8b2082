"""Chains of certificates: Go's verdicts, and those that operators make.

verdicts.jsonl.gz: one case a line: a bundle, a chain, a host, a moment, and what Go's crypto/x509
said of them.
"""

import base64
import datetime
import gzip
import ipaddress
import json
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sampan.core.certificates.chain import bundle_of, check_chain, checked_by
from sampan.core.certificates.refusal import CertificateRefused

VERDICTS = [
    json.loads(line)
    for line in gzip.decompress(
        (Path(__file__).parent / "verdicts.jsonl.gz").read_bytes()
    ).splitlines()
]
NOW = datetime.datetime(2026, 1, 15, tzinfo=datetime.UTC)
KEYS = [ec.generate_private_key(ec.SECP256R1()) for _ in range(3)]


@pytest.mark.parametrize("case", VERDICTS, ids=lambda case: case["Error"][:60] or "good")
def test_a_chain_is_judged_as_go_judges_it(case):
    shown = [base64.b64decode(one) for one in case["Chain"]]
    why = ""
    try:
        check_chain(bundle_of(case["Roots"].encode()), shown, case["Host"], case["Now"])
    except CertificateRefused as error:
        why = str(error)
    assert why == case["Error"]


def name(*parts):
    oids = {"O": NameOID.ORGANIZATION_NAME, "CN": NameOID.COMMON_NAME}
    return x509.Name([x509.NameAttribute(oids[key], text) for key, text in parts])


def certificate(subject, issuer, key, signer, *extensions, days=100):
    """From a day before NOW."""
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - datetime.timedelta(days=200))
        .not_valid_after(NOW + datetime.timedelta(days=days))
    )
    for extension in extensions:
        built = built.add_extension(extension, critical=False)
    return built.sign(signer, hashes.SHA256())


CA = x509.BasicConstraints(ca=True, path_length=None)
SERVER = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
CLIENT = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
ROOT_NAME = name(("O", "knative.dev"), ("CN", "hook.ns.svc"))
HOST = "hook.ns.svc"


def names(*hosts):
    return x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])


def check(roots, chain, host=HOST):
    pem = b"".join(one.public_bytes(Encoding.PEM) for one in roots)
    shown = [one.public_bytes(Encoding.DER) for one in chain]
    check_chain(bundle_of(pem), shown, host, NOW.timestamp())


def test_a_ca_and_a_leaf_of_one_name_without_key_ids():
    """As knative.dev/pkg makes them: OpenSSL takes the leaf for self-signed."""
    root = certificate(ROOT_NAME, ROOT_NAME, KEYS[0], KEYS[0], CA)
    leaf = certificate(ROOT_NAME, ROOT_NAME, KEYS[1], KEYS[0], names(HOST), SERVER)
    check([root], [leaf])
    forged = certificate(ROOT_NAME, ROOT_NAME, KEYS[1], KEYS[2], names(HOST), SERVER)
    with pytest.raises(CertificateRefused, match="unknown authority"):
        check([root], [forged])


def test_a_leaf_that_is_in_the_bundle():
    """As envtest makes them: what the webhook shows is what is trusted."""
    maker = name(("CN", "envtest-environment"))
    leaf = certificate(name(("CN", "localhost")), maker, KEYS[1], KEYS[0], names("localhost"))
    check([leaf], [leaf], "localhost")
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("10.0.0.1"))])
    other = certificate(name(("CN", "x")), maker, KEYS[1], KEYS[0], address)
    with pytest.raises(CertificateRefused, match="not valid for any names"):
        check([other], [other], "localhost")
    for_clients = certificate(
        name(("CN", "x")), maker, KEYS[1], KEYS[0], names("localhost"), CLIENT
    )
    with pytest.raises(CertificateRefused, match="incompatible key usage"):
        check([for_clients], [for_clients], "localhost")


def test_a_chain_with_an_intermediate():
    """As cert-manager makes them: a root in ca.crt, an issuer below it, and a leaf without a
    subject."""
    root_name, middle = name(("CN", "root")), name(("CN", "issuer"))
    root = certificate(root_name, root_name, KEYS[0], KEYS[0], CA)
    issuer = certificate(middle, root_name, KEYS[1], KEYS[0], CA)
    leaf = certificate(name(), middle, KEYS[2], KEYS[1], names(HOST), SERVER)
    check([root], [leaf, issuer])
    check([issuer], [leaf])  # whoever is in the bundle is trusted, root or not
    with pytest.raises(CertificateRefused, match="unknown authority"):
        check([root], [leaf])


def test_an_issuer_that_is_no_ca_signs_nothing():
    middle = name(("CN", "leaf"))
    root = certificate(ROOT_NAME, ROOT_NAME, KEYS[0], KEYS[0], CA)
    no_ca = certificate(middle, ROOT_NAME, KEYS[1], KEYS[0], names("other"), SERVER)
    leaf = certificate(name(), middle, KEYS[2], KEYS[1], names(HOST), SERVER)
    with pytest.raises(CertificateRefused, match="parent certificate cannot sign"):
        check([root], [leaf, no_ca])


def test_what_has_expired_is_refused_with_both_times():
    root = certificate(ROOT_NAME, ROOT_NAME, KEYS[0], KEYS[0], CA)
    leaf = certificate(ROOT_NAME, ROOT_NAME, KEYS[1], KEYS[0], names(HOST), days=-1)
    with pytest.raises(CertificateRefused) as caught:
        check([root], [leaf])
    assert str(caught.value) == (
        "x509: certificate has expired or is not yet valid: current time 2026-01-15T00:00:00Z is "
        "after 2026-01-14T00:00:00Z"
    )


def test_no_chain_takes_for_ever():
    """Many that could have signed each other: Go tries a hundred signatures, and so do we."""
    one = name(("CN", "one"))
    roots = [
        certificate(one, one, KEYS[0], KEYS[0], CA, x509.SubjectKeyIdentifier(bytes([at])))
        for at in range(120)
    ]
    leaf = certificate(one, one, KEYS[1], KEYS[2], names(HOST))
    with pytest.raises(CertificateRefused, match="signature check attempts limit reached"):
        check(roots, [leaf])


def test_what_is_no_certificate_is_refused():
    root = certificate(ROOT_NAME, ROOT_NAME, KEYS[0], KEYS[0], CA)
    pem = root.public_bytes(Encoding.PEM)
    with pytest.raises(CertificateRefused, match="failed to parse certificate from server"):
        checked_by(pem)([b"junk"], HOST)
    with pytest.raises(CertificateRefused, match="empty certificates message"):
        checked_by(pem)([], HOST)
    with pytest.raises(ValueError, match="unable to parse bytes as PEM block"):
        bundle_of(b"junk")
    assert len(bundle_of(b"junk\n" + pem + b"more\n" + pem)) == 2
