"""Certificate signing requests, described.

Job: who asks for which certificate, and how far it got.
"""

import base64

from cryptography import x509
from cryptography.x509.oid import NameOID

from sampan.api.objects import Obj
from sampan.api.rules.durations import human_duration
from sampan.cli.describe.writer import Writer, long_time, pairs_text
from sampan.cli.errors import CliError

_SUBJECT = (
    ("Organization", NameOID.ORGANIZATION_NAME),
    ("Organizational Unit", NameOID.ORGANIZATIONAL_UNIT_NAME),
    ("Country", NameOID.COUNTRY_NAME),
    ("Locality", NameOID.LOCALITY_NAME),
    ("Province", NameOID.STATE_OR_PROVINCE_NAME),
    ("StreetAddress", NameOID.STREET_ADDRESS),
    ("PostalCode", NameOID.POSTAL_CODE),
)
_ALTERNATIVES = (
    ("DNS Names", x509.DNSName),
    ("Email Addresses", x509.RFC822Name),
    ("URIs", x509.UniformResourceIdentifier),
    ("IP Addresses", x509.IPAddress),
)


def signing_request(writer: Writer, obj: Obj, now: float) -> None:
    meta, spec = obj["metadata"], obj["spec"]
    request = _read(spec["request"])
    writer.line(0, "Name:", meta["name"])
    writer.line(0, "Labels:", pairs_text(meta.get("labels")))
    writer.line(0, "Annotations:", pairs_text(meta.get("annotations")))
    writer.line(0, "CreationTimestamp:", long_time(meta.get("creationTimestamp")))
    writer.line(0, "Requesting User:", spec.get("username") or "")
    if spec.get("signerName"):
        writer.line(0, "Signer:", spec["signerName"])
    if spec.get("expirationSeconds") is not None:
        writer.line(0, "Requested Duration:", human_duration(spec["expirationSeconds"]))
    writer.line(0, "Status:", status_text(obj.get("status") or {}))
    writer.line(0, "Subject:")
    writer.line(0, "", "Common Name:", _first(request.subject, NameOID.COMMON_NAME))
    writer.line(0, "", "Serial Number:", _first(request.subject, NameOID.SERIAL_NUMBER))
    for title, oid in _SUBJECT:
        _many(
            writer, title, [str(part.value) for part in request.subject.get_attributes_for_oid(oid)]
        )
    _alternatives(writer, request)


def status_text(status: Obj) -> str:
    kinds = {condition["type"] for condition in status.get("conditions") or []}
    text = "Pending"
    if "Denied" in kinds:
        text = "Denied"
    elif "Approved" in kinds:
        text = "Approved"
    if "Failed" in kinds:
        text += ",Failed"
    return f"{text},Issued" if status.get("certificate") else text


def _read(encoded: str) -> x509.CertificateSigningRequest:
    try:
        return x509.load_pem_x509_csr(base64.b64decode(encoded))
    except ValueError as error:
        raise CliError(f"Error parsing CSR: {error}") from error


def _first(subject: x509.Name, oid: x509.ObjectIdentifier) -> str:
    found = subject.get_attributes_for_oid(oid)
    return str(found[0].value) if found else ""


def _many(writer: Writer, title: str, values: list[str]) -> None:
    for index, value in enumerate(values):
        writer.line(0, "", "" if index else f"{title}:", value)


def _alternatives(writer: Writer, request: x509.CertificateSigningRequest) -> None:
    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    writer.line(0, "Subject Alternative Names:")
    for title, kind in _ALTERNATIVES:
        _many(writer, title, [str(name) for name in names.get_values_for_type(kind)])
