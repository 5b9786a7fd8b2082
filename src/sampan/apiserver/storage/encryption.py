"""Encryption at rest: values are encrypted on their way into the store.

Job: a store around a store; what is read is plain, what is written is encrypted with the first
    provider of its resource. Keys in the store stay readable.
Invariant: a value is bound to its key: moved to another key it does not decrypt (aesgcm, secretbox
    by their tag and nonce, aescbc by its padding only, as upstream).
Invariant: what no provider can read is an error, never handed out as it is; among others, nothing
    is handed out for it.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace

from sampan.api.objects import Obj
from sampan.api.resources import RESOURCES
from sampan.api.rules.durations import parse_seconds
from sampan.apiserver.storage.encryption_schemes import (
    AesCbc,
    AesGcm,
    BadEncryption,
    CallingScheme,
    Scheme,
    SecretBox,
)
from sampan.core.clock import Clock, SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.store.contract import Change, Entry, Page, RevisionMismatch, Store, StoreError, Watch

log = get_logger(__name__)

PREFIX = b"k8s:enc:"

_ROOT = "/registry/"
_KMS_SECONDS = 3.0  # of a call, unless the configuration says otherwise


class Unreadable(StoreError):
    """A value that none of the keys opens."""


class Unsealable(StoreError):
    """A value that cannot be encrypted now."""


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

    def schemes(self) -> Iterator[Scheme]:
        return (key.scheme for key in self._keys if key.scheme is not None)

    async def prepare_seal(self) -> None:
        """The calls that sealing takes. Raises StoreError."""
        first = self._keys[0].scheme
        if isinstance(first, CallingScheme):
            try:
                await first.prepare_seal()
            except ValueError as error:
                raise Unsealable(f"value cannot be encrypted: {error}") from error

    async def prepare_open(self, value: bytes) -> None:
        """The calls that opening takes; what fails is told by who opens it."""
        for item in self._keys:
            if isinstance(item.scheme, CallingScheme) and value.startswith(item.start):
                try:
                    await item.scheme.prepare_open(value[len(item.start) :])
                except ValueError as error:
                    log.warning("key of a stored value cannot be had", error=error)

    def opened(self, key: str, value: bytes) -> tuple[bytes, bool]:
        """(plain, whether it should be written anew). Raises Unreadable."""
        for index, item in enumerate(self._keys):
            if item.scheme is None:
                if not value.startswith(PREFIX):
                    return value, index > 0
                continue
            if value.startswith(item.start):
                sealed = value[len(item.start) :]
                try:
                    plain = item.scheme.open(sealed, key.encode())
                except ValueError as error:
                    raise Unreadable(f"{key} cannot be decrypted: {error}") from error
                is_old = isinstance(item.scheme, CallingScheme) and item.scheme.is_stale(sealed)
                return plain, index > 0 or is_old
        raise Unreadable(f"{key} is encrypted with a key that is not configured")


def transformers(configuration: Obj, clock: Clock | None = None) -> dict[str, Transformer]:
    """Storage prefix → transformer, of an EncryptionConfiguration. `*.group` and `*.*` are kept
    besides, for kinds that somebody will define. Raises BadEncryption."""
    if configuration.get("kind") != "EncryptionConfiguration":
        raise BadEncryption("not an EncryptionConfiguration of apiserver.config.k8s.io/v1")
    found: dict[str, Transformer] = {}
    services = _Services(clock or SystemClock())
    for row in configuration.get("resources") or ():
        providers = row.get("providers") or ()
        keys = [key for provider in providers for key in _keys(provider, services)]
        if not keys:
            raise BadEncryption("resources need at least one provider")
        starts = [key.start for key in keys if key.start]
        if len(set(starts)) < len(starts):
            # Only the first would ever be tried.
            raise BadEncryption("two keys of one provider have the same name")
        for name in row.get("resources") or ():
            _add(found, str(name), Transformer(keys))
    return found


def _add(found: dict[str, Transformer], name: str, transformer: Transformer) -> None:
    for prefix in _prefixes(name):
        if covering(found, prefix) is None:
            found.setdefault(prefix, transformer)
    if name.startswith("*."):
        found.setdefault(name, transformer)


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


class _Services:
    """The key management services of a configuration, each of them once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._made: dict[str, tuple[Obj, _Key]] = {}

    def key_of(self, asked: Obj) -> _Key:
        name, endpoint = str(asked.get("name") or ""), str(asked.get("endpoint") or "")
        if asked.get("apiVersion") != "v2":
            raise BadEncryption("of kms only apiVersion v2 is supported")
        if not name or ":" in name:
            raise BadEncryption(f"invalid kms provider name {name!r}: it is empty, or has a colon")
        if not endpoint.startswith("unix://"):
            raise BadEncryption(f"the endpoint of kms provider {name!r} is no unix socket")
        if asked.get("cachesize") is not None:
            raise BadEncryption("cachesize is not supported in v2")
        seconds = _seconds(asked.get("timeout"))
        known = self._made.get(name)
        if known is not None and known[0] != asked:
            raise BadEncryption(f"duplicate kms provider name {name!r}")
        if known is None:
            # gRPC and what it needs are for who has such a service.
            from sampan.apiserver.storage.kms_scheme import KmsScheme

            scheme = KmsScheme.at(endpoint, seconds, self._clock)
            known = self._made[name] = asked, _Key(f"k8s:enc:kms:v2:{name}:".encode(), scheme)
        return known[1]


def _seconds(timeout: object) -> float:
    if timeout is None:
        return _KMS_SECONDS
    try:
        seconds = parse_seconds(timeout)
    except ValueError as error:
        raise BadEncryption(f"timeout {timeout!r} is no duration") from error
    if seconds <= 0:
        raise BadEncryption("timeout should be a positive value")
    return seconds


def _keys(provider: Obj, services: _Services) -> list[_Key]:
    if "identity" in provider:
        return [_Key(b"", None)]
    if "kms" in provider:
        return [services.key_of(provider["kms"] or {})]
    for kind, make in (("aescbc", AesCbc), ("aesgcm", AesGcm), ("secretbox", SecretBox)):
        if kind in provider:
            made = []
            for key in (provider[kind] or {}).get("keys") or ():
                start = f"k8s:enc:{kind}:v1:{key.get('name')}:".encode()
                made.append(_Key(start, make(_secret(key))))
            return made
    known = "aescbc, aesgcm, secretbox, kms, identity"
    raise BadEncryption(f"unknown provider {sorted(provider)}: {known}")


def _secret(key: Obj) -> bytes:
    try:
        return b64decode(key.get("secret") or "", validate=True)
    except NotBase64 as error:
        raise BadEncryption(f"the secret of key {key.get('name')!r} is no base64") from error


class EncryptedStore:
    def __init__(self, store: Store, by_prefix: dict[str, Transformer]) -> None:
        self._store, self._by_prefix = store, by_prefix
        self._calls = bool(self.calling_schemes())

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
        if entry is None:
            return None
        await self._prepare_open([entry])
        return self._plain(entry)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        page = await self._store.range(prefix, start=start, limit=limit, revision=revision)
        await self._prepare_open(page.entries)
        return replace(page, entries=[self._plain_or_nothing(entry) for entry in page.entries])

    async def create(self, key: str, value: bytes, *, ttl_seconds: int = 0) -> int:
        sealed = await self._seal(key, value)
        return await self._store.create(key, sealed, ttl_seconds=ttl_seconds)

    async def update(
        self, key: str, value: bytes, expected_revision: int, *, ttl_seconds: int = 0
    ) -> int:
        sealed = await self._seal(key, value)
        try:
            return await self._store.update(key, sealed, expected_revision, ttl_seconds=ttl_seconds)
        except RevisionMismatch as error:
            if error.current is not None:
                await self._prepare_open([error.current])
                error.current = self._plain(error.current)
            raise

    async def delete(self, key: str, expected_revision: int) -> int:
        return await self._store.delete(key, expected_revision)

    def watch(self, prefix: str, after_revision: int, *, progress: bool = False) -> Watch:
        return _PlainWatch(self._store.watch(prefix, after_revision, progress=progress), self)

    async def compact(self, revision: int) -> None:
        await self._store.compact(revision)

    async def close(self) -> None:
        for scheme in self.calling_schemes():
            await scheme.close()
        await self._store.close()

    def calling_schemes(self) -> list[CallingScheme]:
        """Each once, in the order of the configuration."""
        found = {
            id(scheme): scheme
            for transformer in self._by_prefix.values()
            for scheme in transformer.schemes()
            if isinstance(scheme, CallingScheme)
        }
        return list(found.values())

    def health(self) -> str:
        """What is wrong with the services that keep keys; empty: nothing."""
        return next(filter(None, (each.health() for each in self.calling_schemes())), "")

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
        await self._prepare_open([entry])
        try:
            await transformer.prepare_seal()
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

    async def _seal(self, key: str, value: bytes) -> bytes:
        transformer = self._of(key)
        if transformer is None:
            return value
        await transformer.prepare_seal()
        return transformer.sealed(key, value)

    async def prepare_changes(self, changes: Sequence[Change]) -> None:
        await self._prepare_open([change.entry for change in changes if change.entry is not None])

    async def _prepare_open(self, entries: Sequence[Entry]) -> None:
        if not self._calls:
            return
        for entry in entries:
            transformer = self._of(entry.key)
            if transformer is not None:
                await transformer.prepare_open(entry.value)

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
            await self._store.prepare_changes(changes)
            yield [self._store.plain(change) for change in changes]
