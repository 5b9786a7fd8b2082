"""Keys that JSON web tokens are checked with.

Job: does this key sign like that? Loaded with the first token: cryptography takes its time.
Invariant: a key of somebody else is so short that a signature is checked in about a millisecond.
Invariant: the key says which algorithms it may be used with; a token's header never chooses alone.
"""

from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from sampan.apiserver.authn.jwt import BadToken, Parsed, base64url, from_base64url

_HASHES: dict[str, hashes.HashAlgorithm] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
_CURVES: dict[str, tuple[str, int]] = {
    "secp256r1": ("ES256", 32),
    "secp384r1": ("ES384", 48),
    "secp521r1": ("ES512", 66),
}
_EC_BYTES = 32  # P-256: r and s
# As Go: crypto/rsa refuses larger exponents, crypto/tls longer keys, and both what is shorter.
_MOST_EXPONENT, _MOST_BITS, _LEAST_BITS = 2**31 - 1, 8192, 1024
_OF_RSA = tuple(f"{kind}{size}" for kind in ("RS", "PS") for size in _HASHES)
_JWK_CURVES: dict[str, ec.EllipticCurve] = {
    "P-256": ec.SECP256R1(),
    "P-384": ec.SECP384R1(),
    "P-521": ec.SECP521R1(),
}

Public = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class SigningKey:
    """The private key of a cluster's own tokens."""

    def __init__(self, pem: bytes) -> None:
        key = serialization.load_pem_private_key(pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ValueError("service account tokens need an EC or RSA key")
        self._key = key
        self.algorithm = "ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "RS256"
        self.public = VerifyingKey(key.public_key())

    def signature(self, data: bytes) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        r, s = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_EC_BYTES, "big") + s.to_bytes(_EC_BYTES, "big")


class VerifyingKey:
    def __init__(self, public: Public, key_id: str = "") -> None:
        self._public = public
        if isinstance(public, ec.EllipticCurvePublicKey):
            algorithm, self._size = _CURVES[public.curve.name]
            self.algorithms: tuple[str, ...] = (algorithm,)
        else:
            self.algorithms, self._size = _OF_RSA, 0
        self.key_id = key_id or _key_id(public)

    def verify(self, token: Parsed) -> None:
        """Raises BadToken."""
        algorithm = token.header.get("alg")
        if algorithm not in self.algorithms:
            raise BadToken("the token is signed with an algorithm that is not ours")
        digest = _HASHES[str(algorithm)[2:]]
        try:
            if isinstance(self._public, rsa.RSAPublicKey):
                scheme: padding.AsymmetricPadding = padding.PKCS1v15()
                if str(algorithm).startswith("PS"):
                    scheme = padding.PSS(padding.MGF1(digest), digest.digest_size)
                self._public.verify(token.signature, token.signed, scheme, digest)
                return
            size = self._size
            if len(token.signature) != 2 * size:
                raise BadToken("the token's signature is not good")
            r, s = token.signature[:size], token.signature[size:]
            whole = encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
            self._public.verify(whole, token.signed, ec.ECDSA(digest))
        except InvalidSignature as error:
            raise BadToken("the token's signature is not good") from error

    def jwk(self) -> dict[str, str]:
        """As a key set shows it."""
        if isinstance(self._public, ec.EllipticCurvePublicKey):
            shown = {"use": "sig", "kid": self.key_id, "alg": self.algorithms[0]}
            point = self._public.public_numbers()
            x, y = (base64url(n.to_bytes(self._size, "big")) for n in (point.x, point.y))
            curve = f"P-{self._public.curve.key_size}"
            return {**shown, "kty": "EC", "crv": curve, "x": x, "y": y}
        numbers = self._public.public_numbers()
        n, e = (base64url(v.to_bytes((v.bit_length() + 7) // 8, "big")) for v in
                (numbers.n, numbers.e))  # fmt: skip
        return {"use": "sig", "kid": self.key_id, "alg": "RS256", "kty": "RSA", "n": n, "e": e}


def verifying_keys(pem: bytes) -> list[VerifyingKey]:
    """Of every key in the text, public or private, and of every certificate. Raises ValueError."""
    found = []
    for block in _blocks(pem):
        try:
            if b"PUBLIC KEY" in block:
                public: object = serialization.load_pem_public_key(block)
            elif b"CERTIFICATE" in block:
                public = x509.load_pem_x509_certificate(block).public_key()
            else:
                public = serialization.load_pem_private_key(block, password=None).public_key()
        except (TypeError, UnsupportedAlgorithm) as error:
            raise ValueError(f"a key cannot be read: {error}") from error
        if not isinstance(public, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
            raise ValueError("service account tokens need an EC or RSA key")
        found.append(VerifyingKey(public))
    return found


def key_of_der(der: bytes, key_id: str) -> VerifyingKey:
    """A public key in PKIX form. Raises ValueError."""
    try:
        public = serialization.load_der_public_key(der)
    except UnsupportedAlgorithm as error:
        raise ValueError(f"a key cannot be read: {error}") from error
    if not isinstance(public, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise ValueError("service account tokens need an EC or RSA key")
    return VerifyingKey(public, key_id)


def key_of_jwk(jwk: dict[str, Any]) -> VerifyingKey | None:
    """None: not a key that signatures can be checked with."""
    try:
        numbers = {
            name: int.from_bytes(from_base64url(jwk[name]), "big")
            for name in ("n", "e", "x", "y")
            if name in jwk
        }
        if jwk.get("kty") == "RSA":
            if not _is_ordinary(numbers["n"], numbers["e"]):
                return None
            public: Public = rsa.RSAPublicNumbers(numbers["e"], numbers["n"]).public_key()
        elif jwk.get("kty") == "EC":
            curve = _JWK_CURVES[jwk["crv"]]
            public = ec.EllipticCurvePublicNumbers(numbers["x"], numbers["y"], curve).public_key()
        else:
            return None
        return VerifyingKey(public, str(jwk.get("kid") or ""))
    except (KeyError, TypeError, ValueError):
        return None


def _is_ordinary(n: int, e: int) -> bool:
    return e <= _MOST_EXPONENT and _LEAST_BITS <= n.bit_length() <= _MOST_BITS


def _key_id(public: Public) -> str:
    der = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    return base64url(digest.finalize())


def _blocks(pem: bytes) -> list[bytes]:
    blocks, current = [], b""
    for line in pem.splitlines(keepends=True):
        current += line
        if line.startswith(b"-----END"):
            blocks.append(current)
            current = b""
    return blocks
