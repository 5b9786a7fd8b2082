"""Encryption at rest: values are encrypted on their way into the store.

Job: a store around a store; what is read is plain, what is written is encrypted with the first
    provider of its resource. Keys in the store stay readable.
Invariant: a value is bound to its key: moved to another key it does not decrypt (aesgcm, secretbox
    by their tag and nonce, aescbc by its padding only, as upstream).
Invariant: what no provider can read is an error, never handed out as it is; among others, nothing
    is handed out for it.
"""

import os
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sampan.api.objects import Obj
from sampan.api.resources import RESOURCES
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.store.contract import Change, Entry, Page, RevisionMismatch, Store, StoreError, Watch

log = get_logger(__name__)

PREFIX = b"k8s:enc:"

_ROOT = "/registry/"


class BadEncryption(ValueError):
    """The configuration cannot be read, or names a key that is none."""


class Unreadable(StoreError):
    """A value that none of the keys opens."""


class Scheme(Protocol):
    name: str

    def seal(self, data: bytes, about: bytes) -> bytes: ...

    def open(self, data: bytes, about: bytes) -> bytes:
        """Raises ValueError."""


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


@dataclass(frozen=True, slots=True)
class _Key:
    start: bytes  # what its values start with; empty: they are plain
    scheme: Scheme | None


class Transformer:
    """The providers of some resources, the first of which writes."""

    def __init__(self, keys: Sequence[_Key]) -> None:
        self._keys = keys

    def sealed(self, key: str, value: bytes) -> bytes:
        first = self._keys[0]
        if first.scheme is None:
            return value
        return first.start + first.scheme.seal(value, key.encode())

    def opened(self, key: str, value: bytes) -> tuple[bytes, bool]:
        """(plain, whether it should be written anew). Raises Unreadable."""
        for index, item in enumerate(self._keys):
            if item.scheme is None:
                if not value.startswith(PREFIX):
                    return value, index > 0
                continue
            if value.startswith(item.start):
                try:
                    plain = item.scheme.open(value[len(item.start) :], key.encode())
                except ValueError as error:
                    raise Unreadable(f"{key} cannot be decrypted: {error}") from error
                return plain, index > 0
        raise Unreadable(f"{key} is encrypted with a key that is not configured")


def transformers(configuration: Obj) -> dict[str, Transformer]:
    """Storage prefix → transformer, of an EncryptionConfiguration. `*.group` and `*.*` are kept
    besides, for kinds that somebody will define. Raises BadEncryption."""
    if configuration.get("kind") != "EncryptionConfiguration":
        raise BadEncryption("not an EncryptionConfiguration of apiserver.config.k8s.io/v1")
    found: dict[str, Transformer] = {}
    for row in configuration.get("resources") or ():
        keys = [key for provider in row.get("providers") or () for key in _keys(provider)]
        if not keys:
            raise BadEncryption("resources need at least one provider")
        starts = [key.start for key in keys if key.start]
        if len(set(starts)) < len(starts):
            # Only the first would ever be tried.
            raise BadEncryption("two keys of one provider have the same name")
        for name in row.get("resources") or ():
            transformer = Transformer(keys)
            for prefix in _prefixes(str(name)):
                if covering(found, prefix) is None:
                    found.setdefault(prefix, transformer)
            if str(name).startswith("*."):
                found.setdefault(str(name), transformer)
    return found


def covering(found: Mapping[str, Transformer], prefix: str) -> Transformer | None:
    """What is configured for all kinds of a custom group, or for all there are; the first wins."""
    group = prefix[len(_ROOT) : -1].partition(".")[2]
    if "." not in group:
        return None  # no definition has such a group
    names = (f"*.{group}", "*.*")
    return next((transformer for name, transformer in found.items() if name in names), None)


def _prefixes(name: str) -> list[str]:
    group = name[2:] if name.startswith("*.") else None
    if group is None:
        matching = [resource for resource in RESOURCES if resource.group_resource == name]
        return [item.storage_prefix for item in matching] or [f"/registry/{name}/"]
    return sorted(
        {resource.storage_prefix for resource in RESOURCES if group in ("*", resource.group)}
    )


def _keys(provider: Obj) -> list[_Key]:
    if "identity" in provider:
        return [_Key(b"", None)]
    for kind, make in (("aescbc", AesCbc), ("aesgcm", AesGcm), ("secretbox", SecretBox)):
        if kind in provider:
            made = []
            for key in (provider[kind] or {}).get("keys") or ():
                start = f"k8s:enc:{kind}:v1:{key.get('name')}:".encode()
                made.append(_Key(start, make(_secret(key))))
            return made
    raise BadEncryption(f"unknown provider {sorted(provider)}: aescbc, aesgcm, secretbox, identity")


def _secret(key: Obj) -> bytes:
    try:
        return b64decode(key.get("secret") or "", validate=True)
    except NotBase64 as error:
        raise BadEncryption(f"the secret of key {key.get('name')!r} is no base64") from error


class EncryptedStore:
    def __init__(self, store: Store, by_prefix: dict[str, Transformer]) -> None:
        self._store, self._by_prefix = store, by_prefix

    @property
    def shared(self) -> bool:
        return self._store.shared

    @property
    def revision(self) -> int:
        return self._store.revision

    async def current_revision(self) -> int:
        return await self._store.current_revision()

    async def get(self, key: str) -> Entry | None:
        entry = await self._store.get(key)
        return None if entry is None else self._plain(entry)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        page = await self._store.range(prefix, start=start, limit=limit, revision=revision)
        return replace(page, entries=[self._plain_or_nothing(entry) for entry in page.entries])

    async def create(self, key: str, value: bytes, *, ttl_seconds: int = 0) -> int:
        return await self._store.create(key, self._seal(key, value), ttl_seconds=ttl_seconds)

    async def update(
        self, key: str, value: bytes, expected_revision: int, *, ttl_seconds: int = 0
    ) -> int:
        sealed = self._seal(key, value)
        try:
            return await self._store.update(key, sealed, expected_revision, ttl_seconds=ttl_seconds)
        except RevisionMismatch as error:
            if error.current is not None:
                error.current = self._plain(error.current)
            raise

    async def delete(self, key: str, expected_revision: int) -> int:
        return await self._store.delete(key, expected_revision)

    def watch(self, prefix: str, after_revision: int, *, progress: bool = False) -> Watch:
        return _PlainWatch(self._store.watch(prefix, after_revision, progress=progress), self)

    async def compact(self, revision: int) -> None:
        await self._store.compact(revision)

    async def close(self) -> None:
        await self._store.close()

    async def reencrypt(self, ttl_seconds: Mapping[str, int]) -> int:
        """Write anew what is plain or sealed with an old key; returns how much that was.
        `ttl_seconds`: by storage prefix, for what does not live for ever."""
        count = 0
        everything = any(name.startswith("*.") for name in self._by_prefix)
        for prefix in [_ROOT] if everything else list(self._by_prefix):
            for entry in (await self._store.range(prefix)).entries:
                count += await self._renew(entry, ttl_seconds)
        return count

    async def _renew(self, entry: Entry, ttl_seconds: Mapping[str, int]) -> bool:
        transformer = self._of(entry.key)
        if transformer is None:
            return False
        try:
            plain, stale = transformer.opened(entry.key, entry.value)
        except Unreadable:
            return False  # who lists it is told
        if not stale:
            return False
        lives = ttl_seconds.get(_prefix_of(entry.key), 0)
        try:
            sealed = transformer.sealed(entry.key, plain)
            await self._store.update(entry.key, sealed, entry.revision, ttl_seconds=lives)
        except RevisionMismatch:
            return False  # whoever was faster has sealed it
        return True

    def plain(self, change: Change) -> Change:
        entry = None if change.entry is None else self._plain_or_nothing(change.entry)
        return replace(change, entry=entry)

    def _plain_or_nothing(self, entry: Entry) -> Entry:
        """One that cannot be read keeps nobody from the others."""
        try:
            return self._plain(entry)
        except Unreadable as error:
            log.error("stored value cannot be decrypted", key=entry.key, error=error)
            return replace(entry, value=b"")

    def _plain(self, entry: Entry) -> Entry:
        transformer = self._of(entry.key)
        if transformer is None:
            return entry
        return replace(entry, value=transformer.opened(entry.key, entry.value)[0])

    def _seal(self, key: str, value: bytes) -> bytes:
        transformer = self._of(key)
        return value if transformer is None else transformer.sealed(key, value)

    def _of(self, key: str) -> Transformer | None:
        prefix = _prefix_of(key)
        return self._by_prefix.get(prefix) or covering(self._by_prefix, prefix)


def _prefix_of(key: str) -> str:
    return key[: key.find("/", len(_ROOT)) + 1]


class _PlainWatch:
    def __init__(self, watch: Watch, store: EncryptedStore) -> None:
        self._watch, self._store = watch, store

    @property
    def position(self) -> int:
        return self._watch.position

    def __aiter__(self) -> AsyncIterator[list[Change]]:
        return self._changes()

    def close(self) -> None:
        self._watch.close()

    async def _changes(self) -> AsyncIterator[list[Change]]:
        async for changes in self._watch:
            yield [self._store.plain(change) for change in changes]
