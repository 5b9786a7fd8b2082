"""One page of a list: as much is read as the page has, not all that follows it.

Job: so many objects from a key on, that a selection matches, of the cache or of the store's past.
Invariant: what a page shows is of one moment; others have the loop in between where it is long.
"""

import asyncio
from collections.abc import Sequence
from itertools import islice

from sampan.api.calls import Item
from sampan.apiserver.storage.stored_form import NotAnObject, item_from
from sampan.apiserver.storage.stored_keys import kind_at
from sampan.apiserver.watch.cache_watcher import Matches
from sampan.apiserver.watch.watch_cache import KindCache
from sampan.core.fast_dataclass import dataclass
from sampan.store.contract import Entry, Store

STEP, READ_STEP = 5000, 500  # objects that are selected, or parsed, in one go
ALL = 1 << 60


@dataclass(frozen=True, slots=True)
class Wanted:
    namespace: str
    start: str  # a key, `namespace/name` or `name`
    most: int  # 0: all
    matches: Matches | None


@dataclass(frozen=True, slots=True)
class Found:
    items: Sequence[Item]
    left: int  # that follow; with a selection 1 stands for some


async def cached_page(kind: KindCache, wanted: Wanted) -> Found:
    namespace, start, most, matches = wanted.namespace, wanted.start, wanted.most, wanted.matches
    if matches is None:
        items = kind.page(namespace, start, most or ALL)
        return Found(items, kind.count_from(namespace, start) - len(items) if most else 0)
    found: list[Item] = []
    if most:  # it may well be among the first; then the others need not even be gathered
        found = _first(kind.page(namespace, start, STEP), matches, most)
    if len(found) < (most or ALL):
        found = await _matching(kind.page(namespace, start, ALL), matches, most or ALL)
    if not most or len(found) < most:
        return Found(found, 0)
    # As upstream: whether one of those that follow matches is not looked at.
    return Found(found, min(1, kind.count_from(namespace, found[-1].key + "\0")))


def _first(items: list[Item], matches: Matches, most: int) -> list[Item]:
    return list(islice((item for item in items if matches(item)), most))


async def _matching(items: list[Item], matches: Matches, most: int) -> list[Item]:
    found: list[Item] = []
    for first in range(0, len(items), STEP):
        if first:
            await asyncio.sleep(0)
        found += _first(items[first : first + STEP], matches, most - len(found))
        if len(found) >= most:
            break
    return found


async def stored_page(
    store: Store, prefix: str, kind: KindCache, wanted: Wanted, revision: int
) -> Found:
    """As it was at a revision. Raises what the store raises."""
    inside = prefix + (f"{wanted.namespace}/" if wanted.namespace else "")
    start, most, matches = wanted.start, wanted.most, wanted.matches
    found: list[Item] = []
    while True:
        left = most - len(found) if most and matches is None else most
        page = await store.range(
            inside, start=prefix + start if start else "", limit=left, revision=revision
        )
        items = await _items(page.entries, prefix, kind)
        if matches is None:
            found += items
            if not page.remaining or len(found) == most:
                return Found(found, page.remaining)
        else:
            found += _first(items, matches, most - len(found) if most else ALL)
            if most and len(found) >= most:
                return Found(found, 1 if page.remaining or found[-1] is not items[-1] else 0)
            if not page.remaining:
                return Found(found, 0)
        start = page.entries[-1].key[len(prefix) :] + "\0"  # not the last item's: it may be none


async def _items(entries: Sequence[Entry], prefix: str, kind: KindCache) -> list[Item]:
    known, items = kind.items, []
    for count, entry in enumerate(entries):
        if count % READ_STEP == READ_STEP - 1:
            await asyncio.sleep(0)
        key = entry.key[len(prefix) :]
        cached = known.get(key)
        if cached is None or cached.revision != entry.revision:
            try:
                cached = item_from(key, entry.value, entry.revision, None, kind=kind_at(prefix))
            except NotAnObject:
                continue  # the cache has named it
        items.append(cached)
    return items
