"""The schemes by which values are encrypted at rest, with keys of the configuration.

Job: bytes and what they are about → sealed bytes, and back.
Invariant: what was changed is never opened.
"""

import os
from typing import Protocol, runtime_checkable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


class BadEncryption(ValueError):
    """The configuration cannot be read, or names a key that is none."""


class Scheme(Protocol):
    name: str

    def seal(self, data: bytes, about: bytes) -> bytes: ...

    def open(self, data: bytes, about: bytes) -> bytes:
        """Raises ValueError."""


@runtime_checkable
class CallingScheme(Scheme, Protocol):
    """One that asks somebody for its keys: whoever seals or opens prepares that first."""

    async def prepare_seal(self) -> None: ...

    async def prepare_open(self, data: bytes) -> None: ...

    def is_stale(self, data: bytes) -> bool: ...

    def health(self) -> str: ...

    async def close(self) -> None: ...


class AesCbc:
    name = "aescbc"

    def __init__(self, key: bytes) -> None:
        if len(key) not in (16, 24, 32):
            raise BadEncryption("an AES key has 16, 24 or 32 bytes")
        self._algorithm = algorithms.AES(key)

    def seal(self, data: bytes, about: bytes) -> bytes:
        padder = padding.PKCS7(128).padder()
        padded = padder.update(data) + padder.finalize()
        start = os.urandom(16)
        encryptor = Cipher(self._algorithm, modes.CBC(start)).encryptor()
        return start + encryptor.update(padded) + encryptor.finalize()

    def open(self, data: bytes, about: bytes) -> bytes:
        decryptor = Cipher(self._algorithm, modes.CBC(data[:16])).decryptor()
        padded = decryptor.update(data[16:]) + decryptor.finalize()
        unpadder = padding.PKCS7(128).unpadder()
        return unpadder.update(padded) + unpadder.finalize()


class AesGcm:
    name = "aesgcm"

    def __init__(self, key: bytes) -> None:
        if len(key) not in (16, 24, 32):
            raise BadEncryption("an AES key has 16, 24 or 32 bytes")
        self._cipher = AESGCM(key)

    def seal(self, data: bytes, about: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._cipher.encrypt(nonce, data, about)

    def open(self, data: bytes, about: bytes) -> bytes:
        try:
            return self._cipher.decrypt(data[:12], data[12:], about)
        except InvalidTag as error:
            raise ValueError("it was changed, or sealed with another key") from error


class SecretBox:
    """XSalsa20 and Poly1305, by PyNaCl, which is needed for this scheme only."""

    name = "secretbox"

    def __init__(self, key: bytes) -> None:
        try:
            from nacl.exceptions import CryptoError
            from nacl.secret import SecretBox as Box
        except ImportError as error:
            raise BadEncryption("secretbox needs PyNaCl: install sampan[secretbox]") from error
        if len(key) != 32:
            raise BadEncryption("a secretbox key has 32 bytes")
        self._box, self._failure = Box(key), CryptoError

    def seal(self, data: bytes, about: bytes) -> bytes:
        return bytes(self._box.encrypt(data))

    def open(self, data: bytes, about: bytes) -> bytes:
        try:
            return bytes(self._box.decrypt(data))
        except self._failure as error:
            raise ValueError("it was changed, or sealed with another key") from error
