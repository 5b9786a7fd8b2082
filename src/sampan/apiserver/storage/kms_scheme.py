"""Values sealed by seeds that a key management service keeps the keys of (KMS v2).

Job: a seed of our own, sealed by the plugin when its key is first seen; every value is sealed by a
    key derived of it (HKDF), without a call. A seed that was read is asked for once.
Invariant: nothing is sealed by a seed whose key the plugin no longer names, once that is known; and
    nothing at all when the plugin has not been well for three minutes.
Owner: the store; `prepare_*` make the calls, `seal` and `open` never wait.
"""

import asyncio
import hashlib
import os
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from sampan.apiserver.storage.kms_plugin import (
    SEED,
    EncryptedObject,
    KmsFailure,
    KmsPlugin,
    Sealed,
    decode_object,
)
from sampan.core.bounded import FlushedMemo
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger

log = get_logger(__name__)

_SEED_BYTES = _INFO_BYTES = 32
_LOOK_SECONDS = 60.0  # between two looks at the plugin's key
_FRESH_SECONDS = 180.0  # how long a seed is good for, after the plugin was well
_MOST_SEEDS = 1000


@dataclass(frozen=True, slots=True)
class _Seed:
    seed: bytes
    source: Sealed


class KmsScheme:
    name = "kms"

    def __init__(self, plugin: KmsPlugin, clock: Clock) -> None:
        self._plugin, self._clock = plugin, clock
        self._current: _Seed | None = None
        self._looked = self._well = float("-inf")
        self._wrong = "not asked yet"
        self._looking = asyncio.Lock()
        self._seeds: FlushedMemo[bytes, tuple[bytes, int]] = FlushedMemo(_MOST_SEEDS)

    @classmethod
    def at(cls, endpoint: str, seconds: float, clock: Clock) -> "KmsScheme":
        return cls(KmsPlugin(endpoint, seconds), clock)

    def health(self) -> str:
        """Empty, or what is wrong."""
        return self._wrong

    def is_stale(self, data: bytes) -> bool:
        """Whether it was sealed by another key than the plugin names now."""
        found = decode_object(data)
        current = self._current
        return found.source_type != SEED or (
            current is not None and found.source.key_id != current.source.key_id
        )

    async def prepare_seal(self) -> None:
        """Raises KmsFailure."""
        async with self._looking:
            now = self._clock.now()
            if now - self._looked >= _LOOK_SECONDS or self._current is None:
                self._looked = now
                try:
                    await self._look()
                    self._well, self._wrong = now, ""
                except KmsFailure as error:
                    self._wrong = str(error)
                    log.warning("KMS plugin is unhealthy", error=error)
            if self._current is None or now - self._well > _FRESH_SECONDS:
                self._looked = float("-inf")
                raise KmsFailure(f"EDEK cannot be used: {self._wrong}")

    async def _look(self) -> None:
        status = await self._plugin.status()
        if status.healthz != "ok":
            raise KmsFailure(f"got unexpected healthz status: {status.healthz}")
        if status.version not in ("v2", "v2beta1"):
            raise KmsFailure(f"unsupported KMS API version {status.version}, expected v2")
        current = self._current
        if current is not None and current.source.key_id == status.key_id:
            return
        seed = os.urandom(_SEED_BYTES)
        source = await self._plugin.encrypt(seed, _uid())
        self._current = _Seed(seed, source)
        self._seeds.keep(_digest(source), (seed, SEED))
        log.info("DEK seed encrypted anew by the KMS plugin", key_id=source.key_id)

    async def prepare_open(self, data: bytes) -> None:
        """Raises KmsFailure."""
        found = decode_object(data)
        digest = _digest(found.source)
        if digest not in self._seeds.known:
            seed = await self._plugin.decrypt(found.source, _uid())
            self._seeds.keep(digest, (seed, found.source_type))

    def seal(self, data: bytes, about: bytes) -> bytes:
        current = self._current
        if current is None:
            raise KmsFailure("no seed was sealed yet")
        info, nonce = os.urandom(_INFO_BYTES), os.urandom(12)
        sealed = AESGCM(_derived(current.seed, info)).encrypt(nonce, data, about)
        return EncryptedObject(info + nonce + sealed, current.source).encode()

    def open(self, data: bytes, about: bytes) -> bytes:
        found = decode_object(data)
        known = self._seeds.known.get(_digest(found.source))
        if known is None:
            raise KmsFailure("its seed was not opened")
        seed, kind = known
        text, key = found.data, seed
        if kind == SEED:
            key, text = _derived(seed, text[:_INFO_BYTES]), text[_INFO_BYTES:]
        try:
            return AESGCM(key).decrypt(text[:12], text[12:], about)
        except InvalidTag as error:
            raise ValueError("it was changed, or sealed with another key") from error

    async def close(self) -> None:
        await self._plugin.close()


def _derived(seed: bytes, info: bytes) -> bytes:
    return HKDFExpand(algorithm=SHA256(), length=32, info=info).derive(seed)


def _digest(source: Sealed) -> bytes:
    """Names a sealed seed: the plugin may need all of it to open it."""
    told = hashlib.sha256(source.ciphertext)
    told.update(source.key_id.encode())
    for key, value in sorted(source.annotations.items()):
        told.update(key.encode() + value)
    return told.digest()


def _uid() -> str:
    return str(UUID(bytes=os.urandom(16), version=4))
