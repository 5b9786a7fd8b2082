"""Keys of pod certificates: their types, and how a node proves that it has one.

Job: make a key of a named type, prove it in both forms (a signature of the pod's uid; an empty
    PKCS #10 request), and judge keys and proofs. Making an RSA key takes long: not on the loop.
"""

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.x509 import CertificateSigningRequest

PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
_CURVES: dict[str, type[ec.EllipticCurve]] = {
    "ECDSAP256": ec.SECP256R1, "ECDSAP384": ec.SECP384R1, "ECDSAP521": ec.SECP521R1,
}  # fmt: skip
_RSA_BITS = {"RSA3072": 3072, "RSA4096": 4096}
_GO_CURVES = {"secp224r1": "P-224"}  # as Go calls the one that is not taken


def new_key(kind: str) -> PrivateKey:
    """Raises ValueError where there is no such type."""
    if kind in _CURVES:
        return ec.generate_private_key(_CURVES[kind]())
    if kind in _RSA_BITS:
        return rsa.generate_private_key(65537, _RSA_BITS[kind])
    if kind == "ED25519":
        return ed25519.Ed25519PrivateKey.generate()
    raise ValueError(f'unknown key type "{kind}"')


def key_pem(key: PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def public_bytes(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def proof_of(key: PrivateKey, uid: str) -> bytes:
    """Who has the key has signed the pod's uid."""
    text = uid.encode()
    match key:
        case ed25519.Ed25519PrivateKey():
            return key.sign(text)
        case ec.EllipticCurvePrivateKey():
            return key.sign(text, ec.ECDSA(hashes.SHA256()))
        case _:
            return key.sign(text, _pss(padding.PSS.MAX_LENGTH), hashes.SHA256())


def stub_request(key: PrivateKey) -> bytes:
    """A PKCS #10 request that asks for nothing: it proves that its sender has the key."""
    built = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    hashing = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return built.sign(key, hashing).public_bytes(serialization.Encoding.DER)


def read_public_key(data: bytes) -> PublicKeyTypes | None:
    try:
        return serialization.load_der_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        return None


def read_request(data: bytes) -> CertificateSigningRequest | None:
    try:
        request = x509.load_der_x509_csr(data)
        request.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return None
    return request


def key_trouble(key: PublicKeyTypes, curves: str) -> tuple[str | None, str]:
    """What is shown of a key that pods may not have, and why; an empty why: they may. `curves`:
    which ones upstream names."""
    match key:
        case ed25519.Ed25519PublicKey():
            return None, ""
        case ec.EllipticCurvePublicKey():
            if isinstance(key.curve, tuple(_CURVES.values())):
                return None, ""
            name = _GO_CURVES.get(key.curve.name, key.curve.name)
            return f"curve {name}", f"elliptic public keys must use curve {curves}"
        case rsa.RSAPublicKey():
            bits = (key.key_size + 7) // 8 * 8
            if bits in _RSA_BITS.values():
                return None, ""
            return f"{bits}-bit modulus", "RSA keys must have modulus size 3072 or 4096"
    return None, "unknown public key type; supported types are Ed25519, ECDSA, and RSA"


def is_proven(key: PublicKeyTypes, uid: str, proof: bytes) -> bool:
    text = uid.encode()
    try:
        match key:
            case ed25519.Ed25519PublicKey():
                key.verify(proof, text)
            case ec.EllipticCurvePublicKey():
                key.verify(proof, text, ec.ECDSA(hashes.SHA256()))
            case rsa.RSAPublicKey():
                key.verify(proof, text, _pss(padding.PSS.AUTO), hashes.SHA256())
            case _:
                return False
    except InvalidSignature:
        return False
    return True


def _pss(salt: object) -> padding.PSS:
    return padding.PSS(padding.MGF1(hashes.SHA256()), salt)  # type: ignore[arg-type]  # _MaxLength and _Auto are private names
