"""Subject of a CertificateSigningRequest.

Job: the subject that a CertificateSigningRequest asks for, as admission compares it. Pure.
"""

from base64 import b64decode

from cryptography import x509
from cryptography.x509.oid import NameOID

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    common_name: str = ""
    organizations: tuple[str, ...] = ()


def subject_of(csr: Obj) -> Subject | None:
    """None where the request cannot be read: validation says what is wrong with it."""
    try:
        request = x509.load_pem_x509_csr(b64decode((csr.get("spec") or {}).get("request") or ""))
        subject = request.subject
    except ValueError:
        return None
    names = [str(one.value) for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    found = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    # As Go reads a subject: of several common names the last one counts.
    return Subject(names[-1] if names else "", tuple(str(one.value) for one in found))
