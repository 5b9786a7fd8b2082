"""Authentication by client certificate: CN is the user, every O a group; it may name a uid.

Job: read a certificate that the TLS layer has verified against the client CA.
Invariant: a certificate with several common names, or uids, is nobody's: others may read another
    one of them.
Invariant: at most MOST users are remembered, each by the whole certificate.
"""

import hashlib

from sampan.api import features
from sampan.apiserver.authn.user import User, with_authenticated_group
from sampan.core.bounded import Bounded

MOST = 1024
UID = "1.3.6.1.4.1.57683.2"  # Kubernetes' own attribute of a subject
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"  # in audit, and in whoami


class CertificateAuthenticator:
    """Remembers what it read: parsing costs more than the rest of a small request."""

    def __init__(self) -> None:
        self._users: Bounded[bytes, User] = Bounded(MOST)

    def user(self, certificate_der: bytes) -> User:
        user = self._users.get(certificate_der)
        if user is None:
            user = self._users[certificate_der] = with_authenticated_group(user_of(certificate_der))
        return user


def user_of(certificate_der: bytes) -> User:
    # With the first certificate: a start has no time for cryptography.
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject = x509.load_der_x509_certificate(certificate_der).subject
    names = [str(item.value) for item in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    said = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(certificate_der).hexdigest()}",)}
    name, uid = names[0] if len(names) == 1 else "", ""
    if features.enabled("AllowParsingUserUIDFromCertAuth"):
        uids = [
            str(item.value) for item in subject.get_attributes_for_oid(x509.ObjectIdentifier(UID))
        ]
        if uids:
            uid = uids[0]
        if len(uids) > 1 or uids == [""]:
            name = ""
    return User(name, tuple(str(group.value) for group in groups), uid, said)
