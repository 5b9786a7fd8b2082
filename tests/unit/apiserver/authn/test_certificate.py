"""Who a client certificate says that it is."""

import datetime
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sampan.api import features
from sampan.apiserver.authn.certificate import CertificateAuthenticator, user_of

UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")


@cache
def key():
    return ec.generate_private_key(ec.SECP256R1())


def certificate(*uids, names=("jane",)):
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names]
    parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "dev")]
    parts += [x509.NameAttribute(UID, uid) for uid in uids]
    subject = x509.Name(parts)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key().public_key())
        .serial_number(1)
        .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC))
    )
    return built.sign(key(), hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    ("uids", "name", "uid"),
    [((), "jane", ""), (("1234",), "jane", "1234"), (("1", "2"), "", "1")],
    ids=["none", "one", "several: nobody's"],
)
def test_the_uid_is_that_of_the_subject(uids, name, uid):
    user = user_of(certificate(*uids))
    assert (user.name, user.uid, user.groups) == (name, uid, ("dev",))


def test_the_uid_goes_with_the_user_into_requests():
    user = CertificateAuthenticator().user(certificate("1234"))
    assert user.uid == "1234"
    assert user.groups == ("dev", "system:authenticated")


def test_without_its_gate_a_uid_is_not_read():
    with features.used(features.Release(gates={"AllowParsingUserUIDFromCertAuth": False})):
        assert user_of(certificate("1", "2")).uid == ""
        assert user_of(certificate("1", "2")).name == "jane"
