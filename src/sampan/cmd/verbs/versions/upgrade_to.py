"""`sampan upgrade --to 1.37`: another Kubernetes for a cluster.

Job: say what changes; write what is stored in a version that will be another one; note the version.
Invariant: that it has begun is noted before the first write, and the version after the last one:
    what was interrupted is not started, and the same command finishes it.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

from sampan.api.convert import in_version
from sampan.api.feature_gates import number_of
from sampan.apiserver.storage.encryption import (
    EncryptedStore,
    Transformer,
    transformers,
)
from sampan.apiserver.storage.encryption_schemes import BadEncryption
from sampan.apiserver.storage.stored_form import (
    NotAnObject,
    canonical,
    read_stored,
    stored_bytes,
)
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, Lock, find_data_dir, store_url
from sampan.cmd.cluster.releases import KEPT, UPGRADING, minor_of, noted_minor
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.security_settings import document
from sampan.cmd.snapshot.snapshot_file import ENCRYPTED
from sampan.cmd.verbs.versions.version_changes import Changes, changes_between
from sampan.core.clock import SystemClock
from sampan.store.contract import Entry, StoreError
from sampan.store.open import open_store
from sampan.store.sqlite_copy import copy_store

Keys = dict[str, Transformer]  # by storage prefix
_PAGE = 500
_FILE = "sqlite:///"


def run(data_dir: str, wanted: str, encryption_file: str = "", *, dry_run: bool) -> int:
    """The exit code."""
    try:
        data = find_data_dir(data_dir)
        configuration = document(encryption_file)
        keys = {} if configuration is None else transformers(configuration)
        _upgrade(data, wanted, keys, dry_run=dry_run)
    except (CannotStart, DataDirError, StoreError, BadEncryption) as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    return 0


def _upgrade(data: DataDir, wanted: str, keys: Keys, *, dry_run: bool) -> None:
    old, new = noted_minor(data), minor_of(wanted)
    check(old, new, str(data.record().get(UPGRADING) or ""))
    if old == new:
        print(f"{data.root} is Kubernetes v{new}")
        return
    changes = changes_between(old, new)
    counts = _looked(data, changes, keys) if dry_run else _moved(data, changes, new, keys)
    print("\n".join(told(changes, counts, old, new)))
    print(
        f"\nnothing was changed: `sampan upgrade --to {new}` makes it v{new}"
        if dry_run
        else f"\n{data.root} is Kubernetes v{new} from its next start on"
    )


def _looked(data: DataDir, changes: Changes, keys: Keys) -> dict[str, int]:
    """Without a word to a cluster that runs: its file is read as a copy."""
    with tempfile.TemporaryDirectory(prefix="sampan-upgrade-") as directory:
        url = store_url(data)
        if url.startswith(_FILE):
            copy = Path(directory) / "store"
            copy_store(Path(url.removeprefix(_FILE)), copy)
            url = f"{_FILE}{copy}"
        return asyncio.run(_outdated(url, changes.stored, keys))


def _moved(data: DataDir, changes: Changes, new: str, keys: Keys) -> dict[str, int]:
    lock = Lock.take(data)  # says whose it is where the cluster runs
    try:
        url = store_url(data)
        counts = asyncio.run(_outdated(url, changes.stored, keys))  # all can be read: it begins
        data.remember(**{UPGRADING: new})
        asyncio.run(_outdated(url, changes.stored, keys, write=True))
        data.remember(**{KEPT: new, UPGRADING: ""})
        return counts
    finally:
        lock.release()


def check(old: str, new: str, begun: str) -> None:
    """Raises CannotStart."""
    if not old:
        raise CannotStart("there is no cluster yet: `sampan up --kubernetes-version` chooses")
    if number_of(new) < number_of(old):
        raise CannotStart(f"this cluster is Kubernetes v{old}: it cannot go back to v{new}")
    if begun and begun != new:
        raise CannotStart(f"an upgrade to v{begun} has begun: `sampan upgrade --to {begun}` first")


def told(changes: Changes, counts: Mapping[str, int], old: str, new: str) -> Iterator[str]:
    yield f"Kubernetes v{old} → v{new}"
    for title, names in (
        ("no longer served", changes.gone),
        ("newly served", changes.new),
        ("features that are on then", changes.on),
        ("features that are off then", changes.off),
    ):
        if names:
            yield f"{title}:"
            yield from (f"  {name}" for name in names)
    for name, count in counts.items():
        yield f"stored as {changes.stored[name]}: {count} {name}"


async def _outdated(
    url: str, stored: Mapping[str, str], keys: Keys, *, write: bool = False
) -> dict[str, int]:
    """How many of each kind are in another version than they should; they are written in that."""
    counts: dict[str, int] = {}
    store = EncryptedStore(await open_store(url, SystemClock()), keys)
    try:
        for name, api_version in stored.items():
            async for entry in _entries(store, f"/registry/{name}/"):
                if entry.value.startswith(ENCRYPTED):
                    raise CannotStart(
                        f"{name} are encrypted: --encryption-provider-config says how"
                    )
                try:
                    before, _ = read_stored(entry.value, "")
                except NotAnObject:
                    continue  # nobody reads it, in any version
                after = in_version(before, api_version)
                if after is before:
                    continue
                counts[name] = counts.get(name, 0) + 1
                if write:
                    await store.update(entry.key, stored_bytes(canonical(after)), entry.revision)
    finally:
        await store.close()
    return counts


async def _entries(store: EncryptedStore, prefix: str) -> AsyncIterator[Entry]:
    start = ""
    while True:
        page = await store.range(prefix, start=start, limit=_PAGE)
        for entry in page.entries:
            yield entry
        if not page.remaining:
            return
        start = page.entries[-1].key + "\0"
