"""A server's certificates, judged as Go's crypto/x509 judges them.

Job: a bundle of trusted certificates, a chain that a server has shown, a host and a moment → is it
    that server's, else why not, in Go's words. Pure, given the time.
Invariant: whom nobody in the bundle has signed, and who is not in it himself, is refused.
Invariant: every signature on the way, name, date, usage and constraint is checked.

Why not OpenSSL: it takes a leaf whose issuer has its own name, and no key ids, for self-signed, and
refuses it before it looks at any signature. Whoever makes certificates for Go's clients (webhooks
of operators do) never notices.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, SignatureAlgorithmOID

from sampan.core.certificates.names import NotPermitted, check_permitted, mismatch, names_of
from sampan.core.certificates.refusal import CertificateRefused
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass

Found = TypeVar("Found", bound=x509.ExtensionType)

_MOST_SIGNATURES = 100  # that are tried for one chain, as Go
_UNKNOWN = "x509: certificate signed by unknown authority"
_CANNOT_SIGN = "x509: invalid signature: parent certificate cannot sign this kind of certificate"
_HANDLED = (
    x509.KeyUsage, x509.BasicConstraints, x509.SubjectAlternativeName, x509.NameConstraints,
    x509.CRLDistributionPoints, x509.AuthorityKeyIdentifier, x509.ExtendedKeyUsage,
    x509.SubjectKeyIdentifier, x509.CertificatePolicies, x509.PolicyConstraints,
    x509.InhibitAnyPolicy, x509.AuthorityInformationAccess,
)  # fmt: skip
_ECDSA_SIGNATURES = "1.2.840.10045.4."
_INSECURE = {"md5": "MD5", "sha1": "SHA1"}


@dataclass(frozen=True, slots=True)
class _Hint:
    """The first candidate that was none, and why: a message names it."""

    why: str
    certificate: x509.Certificate


def bundle_of(pem: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM text; what else is there is passed over, as Go does. Raises
    ValueError where there is none."""
    found = []
    wrong = ""
    for block in _blocks(pem):
        try:
            found.append(x509.load_pem_x509_certificate(block))
        except ValueError as error:
            wrong = wrong or f"failed to parse certificate: {error}"
    if not found:
        raise ValueError(wrong or "unable to parse bytes as PEM block")
    return found


def _blocks(pem: bytes) -> list[bytes]:
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    return [begin + part.partition(end)[0] + end for part in pem.split(begin)[1:] if end in part]


def checked_by(pem: bytes) -> Callable[[list[bytes], str], None]:
    """Who judges servers by a bundle, at the time of the day. Raises ValueError."""
    roots = bundle_of(pem)
    return lambda shown, host: check_chain(roots, shown, host, SystemClock.now())


def check_chain(
    roots: Sequence[x509.Certificate], shown: Sequence[bytes], host: str, now: float
) -> None:
    """`shown`: in DER, the server's own first. Raises CertificateRefused."""
    try:
        chain = [x509.load_der_x509_certificate(one) for one in shown]
    except ValueError as error:
        why = f"tls: failed to parse certificate from server: {error}"
        raise CertificateRefused(why) from error
    if not chain:
        raise CertificateRefused("tls: received empty certificates message")
    _Verification(roots, chain[1:], datetime.fromtimestamp(now, UTC)).check(chain[0], host)


class _Verification:
    """Of one server, at one moment."""

    def __init__(
        self,
        roots: Sequence[x509.Certificate],
        intermediates: Sequence[x509.Certificate],
        now: datetime,
    ) -> None:
        self._roots, self._intermediates, self._now = roots, intermediates, now
        self._signatures = 0

    def check(self, leaf: x509.Certificate, host: str) -> None:
        """Raises CertificateRefused."""
        wrong = self._problem(leaf, (), is_intermediate=False)
        wrong = wrong or mismatch(names_of(leaf), _first(leaf, NameOID.COMMON_NAME), host)
        if wrong:
            raise CertificateRefused(wrong)
        chains = [(leaf,)] if leaf in self._roots else self._chains((leaf,))
        if not any(map(_are_policies_valid, chains)):
            raise CertificateRefused(
                "x509: no valid chains built: all candidate chains have invalid policies"
            )
        if not any(map(_is_for_servers, chains)):
            raise CertificateRefused("x509: certificate specifies an incompatible key usage")

    def _chains(self, chain: tuple[x509.Certificate, ...]) -> list[tuple[x509.Certificate, ...]]:
        """Every way from the last one to a root. Raises CertificateRefused where there is none."""
        child = chain[-1]
        found: list[tuple[x509.Certificate, ...]] = []
        hint: _Hint | None = None
        refused: CertificateRefused | None = None  # by what was looked at last
        for is_root, parent in self._parents(child):
            if _is_in(parent, chain):
                continue
            self._signatures += 1
            if self._signatures > _MOST_SIGNATURES:
                raise CertificateRefused(
                    "x509: signature check attempts limit reached while verifying certificate chain"
                )
            wrong = _signature_problem(child, parent)
            if wrong:
                hint = hint or _Hint(wrong, parent)
                continue
            wrong = self._problem(parent, chain, is_intermediate=not is_root)
            refused = CertificateRefused(wrong) if wrong else None
            if wrong:
                hint = hint or _Hint(wrong, parent)
            elif is_root:
                found.append((*chain, parent))
            else:
                try:
                    found += self._chains((*chain, parent))
                except CertificateRefused as error:
                    refused = error
        if not found:
            raise refused or CertificateRefused(_unknown_authority(hint))
        return found

    def _parents(self, child: x509.Certificate) -> list[tuple[bool, x509.Certificate]]:
        """Those with the issuer's name: the roots first, and who has the right key id before who
        has another one."""
        found = []
        wanted = _authority_key(child)
        for is_root, certificates in ((True, self._roots), (False, self._intermediates)):
            named = [one for one in certificates if one.subject == child.issuer]
            named.sort(key=lambda one: _key_rank(_subject_key(one), wanted))
            found += [(is_root, one) for one in named]
        return found

    def _problem(
        self,
        certificate: x509.Certificate,
        chain: tuple[x509.Certificate, ...],
        is_intermediate: bool,
    ) -> str:
        """Why it cannot stand behind this chain; empty where it can."""
        if _has_unhandled_extension(certificate):
            return "x509: unhandled critical extension"
        wrong = self._date_problem(certificate)
        if wrong:
            return wrong
        constraints = _extension(certificate, x509.NameConstraints)
        if chain and constraints is not None:
            try:
                for one in chain:
                    check_permitted(constraints, names_of(one))
            except NotPermitted as error:
                return (
                    "x509: a root or intermediate certificate is not authorized to sign for this "
                    f"name: {error}"
                )
        basic = _extension(certificate, x509.BasicConstraints)
        if is_intermediate and (basic is None or not basic.ca):
            return "x509: certificate is not authorized to sign other certificates"
        limit = None if basic is None else basic.path_length
        if limit is not None and len(chain) - 1 > limit:
            return "x509: too many intermediates for path length constraint"
        return ""

    def _date_problem(self, certificate: x509.Certificate) -> str:
        head = "x509: certificate has expired or is not yet valid: current time"
        now, first = self._now, certificate.not_valid_before_utc
        last = certificate.not_valid_after_utc
        if now < first:
            return f"{head} {_time(now)} is before {_time(first)}"
        return f"{head} {_time(now)} is after {_time(last)}" if now > last else ""


def _signature_problem(child: x509.Certificate, parent: x509.Certificate) -> str:
    basic = _extension(parent, x509.BasicConstraints)
    if (basic is None and parent.version is x509.Version.v3) or (basic and not basic.ca):
        return _CANNOT_SIGN
    usage = _extension(parent, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        return _CANNOT_SIGN
    try:
        key = _Key.of(parent)
        algorithm = child.signature_hash_algorithm
        wanted = _signing_key(child)
        if algorithm is not None and algorithm.name in _INSECURE:
            name = f"{_INSECURE[algorithm.name]}-{wanted}"
            return f"x509: cannot verify signature: insecure algorithm {name}"
        if wanted != key.word:
            return (
                f"x509: signature algorithm specifies an {wanted} public key, but have public key "
                f"of type {key.go_type}"
            )
        child.verify_directly_issued_by(parent)
    except InvalidSignature:
        return key.failure
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "x509: cannot verify signature: algorithm unimplemented"
    return ""


@dataclass(frozen=True, slots=True)
class _Key:
    """What Go calls a kind of key, and a signature that is none of it."""

    word: str
    go_type: str
    failure: str

    @staticmethod
    def of(certificate: x509.Certificate) -> "_Key":
        """Raises ValueError, UnsupportedAlgorithm."""
        key = certificate.public_key()
        found = next((one for kind, one in _KEYS.items() if isinstance(key, kind)), None)
        if found is None:
            raise UnsupportedAlgorithm("no key of a kind that signs certificates")
        return found


_KEYS: dict[type, _Key] = {
    rsa.RSAPublicKey: _Key("RSA", "*rsa.PublicKey", "crypto/rsa: verification error"),
    ec.EllipticCurvePublicKey: _Key(
        "ECDSA", "*ecdsa.PublicKey", "x509: ECDSA verification failure"
    ),
    ed25519.Ed25519PublicKey: _Key(
        "Ed25519", "ed25519.PublicKey", "x509: Ed25519 verification failure"
    ),
}


def _signing_key(child: x509.Certificate) -> str:
    """With which kind of key it says that it was signed."""
    oid = child.signature_algorithm_oid
    if oid == SignatureAlgorithmOID.ED25519:
        return "Ed25519"
    return "ECDSA" if oid.dotted_string.startswith(_ECDSA_SIGNATURES) else "RSA"


def _unknown_authority(hint: _Hint | None) -> str:
    if hint is None:
        return _UNKNOWN
    one = hint.certificate
    name = _first(one, NameOID.COMMON_NAME) or _first(one, NameOID.ORGANIZATION_NAME)
    name = name or f"serial:{one.serial_number}"
    return (
        f'{_UNKNOWN} (possibly because of "{_quoted(hint.why)}" while trying to verify candidate '
        f'authority certificate "{_quoted(name)}")'
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _is_in(candidate: x509.Certificate, chain: Sequence[x509.Certificate]) -> bool:
    """The same subject, key and alternative names: it would not lead any further."""
    key = _public_key(candidate)
    return any(
        one.subject == candidate.subject
        and _public_key(one) == key
        and _extension(one, x509.SubjectAlternativeName)
        == _extension(candidate, x509.SubjectAlternativeName)
        for one in chain
    )


def _is_for_servers(chain: Sequence[x509.Certificate]) -> bool:
    """Whoever names usages names this one, or any."""
    wanted = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    for one in chain:
        usages = _extension(one, x509.ExtendedKeyUsage)
        if usages is not None and not wanted & set(usages):
            return False
    return True


def _are_policies_valid(chain: Sequence[x509.Certificate]) -> bool:
    """Where an issuer wants a policy to be named, everybody below it names one."""
    for at, one in enumerate(chain):
        wanted = _extension(one, x509.PolicyConstraints)
        if wanted is None or wanted.require_explicit_policy is None:
            continue
        below = chain[: max(0, at - wanted.require_explicit_policy)]
        if any(_extension(each, x509.CertificatePolicies) is None for each in below):
            return False
    return True


def _has_unhandled_extension(certificate: x509.Certificate) -> bool:
    for extension in certificate.extensions:
        if not extension.critical:
            continue
        if not isinstance(extension.value, _HANDLED):
            return True
        if isinstance(extension.value, x509.SubjectAlternativeName):
            names = names_of(certificate)
            if not (names.dns or names.addresses or names.emails or names.uris):
                return True
        if isinstance(extension.value, x509.NameConstraints) and _has_other_names(extension.value):
            return True
    return False


def _has_other_names(constraints: x509.NameConstraints) -> bool:
    known = (x509.DNSName, x509.IPAddress, x509.RFC822Name, x509.UniformResourceIdentifier)
    every = [*(constraints.permitted_subtrees or ()), *(constraints.excluded_subtrees or ())]
    return not all(isinstance(one, known) for one in every)


def _extension(certificate: x509.Certificate, kind: type[Found]) -> Found | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _subject_key(certificate: x509.Certificate) -> bytes:
    found = _extension(certificate, x509.SubjectKeyIdentifier)
    return b"" if found is None else found.digest


def _authority_key(certificate: x509.Certificate) -> bytes:
    found = _extension(certificate, x509.AuthorityKeyIdentifier)
    return b"" if found is None or found.key_identifier is None else found.key_identifier


def _key_rank(own: bytes, wanted: bytes) -> int:
    return 0 if own == wanted else 1 if not own or not wanted else 2


def _public_key(certificate: x509.Certificate) -> bytes:
    try:
        key = certificate.public_key()
        return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        return b""


def _first(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> str:
    found = certificate.subject.get_attributes_for_oid(oid)
    return str(found[-1 if oid == NameOID.COMMON_NAME else 0].value) if found else ""


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
