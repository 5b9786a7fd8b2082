"""A store made equal to a snapshot.

Job: write what differs, delete what is too much; uids and statuses stay as they were.
Invariant: revisions only grow: whoever has seen the cluster before hears of every difference.
Owner: whoever opened the store; no API server may be using it.
"""

from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj
from sampan.apiserver.settings import ApiServerSettings
from sampan.apiserver.storage.stored_form import canonical, stored_bytes
from sampan.cmd.snapshot.snapshot_file import ENCRYPTED, SERVERS, BadSnapshot, storage_keys
from sampan.core.tasks import all_of
from sampan.store.contract import Store
from sampan.store.sqlite_copy import NewEntry

ROOT = "/registry/"
EVENTS = "/registry/events/"
EVENT_SECONDS = ApiServerSettings().event_ttl_seconds
AT_ONCE = 1000  # writes under way


async def restore(store: Store, objects: Sequence[Obj]) -> int:
    """How many writes it took. Raises BadSnapshot."""
    wanted = _values(objects)
    there = {entry.key: entry for entry in (await store.range(ROOT)).entries}
    if any(entry.value.startswith(ENCRYPTED) for entry in there.values()):
        raise BadSnapshot(
            "the objects in this store are encrypted, and those of a snapshot are not: `sampan "
            "fork --snapshot NAME --to DIR` starts a cluster beside it"
        )
    works = [
        store.delete(key, entry.revision)
        for key, entry in there.items()
        if key not in wanted and not key.startswith(SERVERS)
    ]
    for key, value in wanted.items():
        life = EVENT_SECONDS if key.startswith(EVENTS) else 0
        if key not in there:
            works.append(store.create(key, value, ttl_seconds=life))
        elif there[key].value != value:
            works.append(store.update(key, value, there[key].revision, ttl_seconds=life))
    for at in range(0, len(works), AT_ONCE):
        await all_of(works[at : at + AT_ONCE])
    return len(works)


def new_entries(objects: Sequence[Obj], now: float) -> list[NewEntry]:
    """Of a store that has nothing else."""
    return [
        NewEntry(key, value, now + EVENT_SECONDS if key.startswith(EVENTS) else None)
        for key, value in _values(objects).items()
    ]


def _values(objects: Sequence[Obj]) -> Mapping[str, bytes]:
    return {key: stored_bytes(canonical(obj)) for key, obj in storage_keys(objects).items()}
