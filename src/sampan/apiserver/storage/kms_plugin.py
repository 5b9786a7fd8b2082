"""A key management service behind a unix socket: KMS v2 of Kubernetes.

Job: the three calls of `v2.KeyManagementService`, and the message in which a value is stored with
    the seed it was sealed by (upstream's EncryptedObject).
Invariant: every call has a deadline; nothing but KmsFailure comes out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sampan.api.go_quoting import quoted
from sampan.api.rules import names
from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.plugin_calls import PluginCalls
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.protobuf_wire import bytes_field, fields, text_of, varint_field

_SERVICE = "v2.KeyManagementService"
SEED = 1  # the type of what values are sealed by: HKDF_SHA256_XNONCE_AES_GCM_SEED
_LONGEST_KEY_ID, _LONGEST_SOURCE, _LONGEST_ANNOTATIONS = 1024, 1024, 32 * 1024


class KmsFailure(ValueError):
    """The plugin is not there, or its answer makes no sense."""


@dataclass(frozen=True, slots=True)
class Status:
    version: str
    healthz: str
    key_id: str


@dataclass(frozen=True, slots=True)
class Sealed:
    """What the plugin made of a seed."""

    ciphertext: bytes
    key_id: str
    annotations: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class EncryptedObject:
    data: bytes
    source: Sealed
    source_type: int = SEED

    def encode(self) -> bytes:
        source = self.source
        return b"".join((
            bytes_field(1, self.data),
            bytes_field(2, source.key_id.encode()),
            bytes_field(3, source.ciphertext),
            *(_entry(4, key, value) for key, value in sorted(source.annotations.items())),
            varint_field(5, self.source_type) if self.source_type else b"",
        ))  # fmt: skip


def decode_object(text: bytes) -> EncryptedObject:
    """Raises KmsFailure."""
    found: dict[int, Any] = {}
    annotations: dict[str, bytes] = {}
    for number, value in _fields(text):
        if number == 4 and isinstance(value, bytes):
            annotations |= _read_entry(value)
        else:
            found[number] = value
    data, key_id, source = (found.get(number) or b"" for number in (1, 2, 3))
    if not (isinstance(data, bytes) and isinstance(key_id, bytes) and isinstance(source, bytes)):
        raise KmsFailure("it is no encrypted object")
    sealed = Sealed(source, key_id.decode(errors="replace"), annotations)
    check_sealed(sealed)
    return EncryptedObject(data, sealed, int(found.get(5) or 0))


def check_sealed(sealed: Sealed) -> None:
    """As upstream judges what a plugin answers, and what is stored of it. Raises KmsFailure."""
    if not sealed.ciphertext:
        raise KmsFailure("encrypted dek source is empty")
    if len(sealed.ciphertext) > _LONGEST_SOURCE:
        size = len(sealed.ciphertext)
        raise KmsFailure(f"encrypted dek source is {size} bytes, which exceeds the max size of"
                         f" {_LONGEST_SOURCE}")  # fmt: skip
    if not sealed.key_id:
        raise KmsFailure("keyID is empty")
    if len(sealed.key_id.encode()) > _LONGEST_KEY_ID:
        size = len(sealed.key_id.encode())
        raise KmsFailure(f"keyID is {size} bytes, which exceeds the max size of {_LONGEST_KEY_ID}")
    for key in sealed.annotations:
        if wrong := full_domain_complaints(key):
            raise KmsFailure(f"annotations: Invalid value: {quoted(key)}: {wrong}")
    size = sum(len(key) + len(value) for key, value in sealed.annotations.items())
    if size > _LONGEST_ANNOTATIONS:
        raise KmsFailure(f"total size of annotations is {size}, which exceeds the max size of"
                         f" {_LONGEST_ANNOTATIONS}")  # fmt: skip


def full_domain_complaints(name: str) -> str:
    """Empty for a domain of two segments or more."""
    name = name.removesuffix(".")
    if wrong := names.dns_subdomain(name):
        return ",".join(wrong)
    return "" if "." in name else "should be a domain with at least two segments separated by dots"


class KmsPlugin:
    def __init__(self, endpoint: str, seconds: float) -> None:
        self._plugin, self._seconds = (
            PluginCalls(endpoint.removeprefix("unix://"), _SERVICE),
            seconds,
        )

    async def status(self) -> Status:
        found = await self._call("Status", b"")
        texts = {number: text_of(value) for number, value in found}
        return Status(texts.get(1, ""), texts.get(2, ""), texts.get(3, ""))

    async def encrypt(self, plain: bytes, uid: str) -> Sealed:
        found = await self._call("Encrypt", bytes_field(1, plain) + bytes_field(2, uid.encode()))
        annotations: dict[str, bytes] = {}
        for number, value in found:
            if number == 3 and isinstance(value, bytes):
                annotations |= _read_entry(value)
        by_number = dict(found)
        ciphertext = by_number.get(1) or b""
        sealed = Sealed(bytes(ciphertext), text_of(by_number.get(2) or b""), annotations)
        check_sealed(sealed)
        return sealed

    async def decrypt(self, sealed: Sealed, uid: str) -> bytes:
        request = b"".join((
            bytes_field(1, sealed.ciphertext),
            bytes_field(2, uid.encode()),
            bytes_field(3, sealed.key_id.encode()),
            *(_entry(4, key, value) for key, value in sorted(sealed.annotations.items())),
        ))  # fmt: skip
        found = dict(await self._call("Decrypt", request))
        return bytes(found.get(1) or b"")

    async def close(self) -> None:
        await self._plugin.close()

    async def _call(self, method: str, request: bytes) -> list[tuple[int, bytes | int]]:
        try:
            return await self._plugin.call(method, request, self._seconds)
        except (GrpcFailure, ValueError) as error:
            raise KmsFailure(f"{method}: {error}") from error


def _entry(number: int, key: str, value: bytes) -> bytes:
    return bytes_field(number, bytes_field(1, key.encode()) + bytes_field(2, value))


def _read_entry(text: bytes) -> dict[str, bytes]:
    found = dict(_fields(text))
    value = found.get(2) or b""
    return {text_of(found.get(1) or b""): value if isinstance(value, bytes) else b""}


def _fields(text: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Raises KmsFailure where it is no message."""
    try:
        yield from fields(text)
    except ValueError as error:
        raise KmsFailure(str(error)) from error
