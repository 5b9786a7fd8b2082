"""Generic registry: the one way into the store and out of it, for every kind.

Job: one compare-and-swap per write; the item that is answered is the one that was stored.
Invariant: when a write has been answered, the cache has it.
Invariant: an update that changes nothing writes nothing.
Invariant: no object is stored that etcd would not take.
"""

from collections.abc import Awaitable, Coroutine
from typing import Any

from sampan.api import convert
from sampan.api.calls import Answer, Item
from sampan.api.errors import (
    AlreadyExists,
    ApiError,
    InternalError,
    ObjectTooLarge,
    ServiceUnavailable,
    Timeout,
    already_exists,
    not_found,
)
from sampan.api.kinds import Kinds
from sampan.api.objects import Obj, is_deleted
from sampan.api.resources import Resource
from sampan.apiserver.registry.custom_resources import shown_item
from sampan.apiserver.storage.compact_items import SharedItem
from sampan.apiserver.storage.store_metrics import StoreMetrics
from sampan.apiserver.storage.stored_form import canonical, item_from, same_content, stored_bytes
from sampan.apiserver.watch.pending_writes import PendingWrites
from sampan.apiserver.watch.watch_cache import KindCache, WatchCache
from sampan.core.fast_dataclass import dataclass
from sampan.core.holding import Hold, run_to_end
from sampan.store.contract import (
    KeyExists,
    RevisionMismatch,
    Store,
    StoreClosed,
    StoreError,
    Unavailable,
)

LARGEST_OBJECT_BYTES = 1536 * 1024  # as etcd's --max-request-bytes
TOO_LARGE = "etcdserver: request is too large"
UNREADABLE = "Internal error occurred: what is stored at {} cannot be read: {}"


class Stale(Exception):
    """Somebody else has written the object in the meantime."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a write is made, and who has to know whether it was."""

    ttl_seconds: int = 0
    dry_run: bool = False
    hold: Hold | None = None

    def commit(self) -> None:
        if self.hold is not None:
            self.hold.commit()

    def written(self, write: Coroutine[Any, Any, int]) -> Awaitable[int]:
        """The store's own answer: who is cancelled meanwhile is so when it is known."""
        return run_to_end(write if self.hold is None else _outcome(write, self.hold))


PLAIN = Terms()


def _bind(value: bytes) -> bytes:
    """Raises ObjectTooLarge."""
    if len(value) > LARGEST_OBJECT_BYTES:
        raise ObjectTooLarge(TOO_LARGE)
    return value


async def _outcome(write: Awaitable[int], hold: Hold) -> int:
    try:
        revision = await write
    except (KeyExists, RevisionMismatch):
        raise
    except StoreError:
        hold.doubt()
        raise
    hold.commit()
    return revision


class Registry:
    def __init__(
        self, store: Store, cache: WatchCache, kinds: Kinds | None, measured: StoreMetrics
    ) -> None:
        self.store, self._measured = store, measured
        self.cache = cache
        self.kinds = kinds or Kinds()  # what there is to be stored
        # Asked several times per request; a kind's cache is the same one until it is let go.
        self._kinds: dict[tuple[str, str], KindCache] = {}
        self._pending = PendingWrites(store)

    def kind(self, resource: Resource) -> KindCache:
        key = (resource.plural, resource.group)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = self.cache.kind(resource.storage_prefix)
        return found

    def let_go(self, resource: Resource) -> bool:
        """As the watch cache says, of a kind whose last use is long over."""
        gone = self.cache.let_go(resource.storage_prefix)
        if gone:
            self._kinds.pop((resource.plural, resource.group), None)
        return gone

    def find(self, resource: Resource, namespace: str, name: str) -> Obj | None:
        """As the cache has it now; stored form."""
        item = self.kind(resource).items.get(f"{namespace}/{name}" if namespace else name)
        return None if item is None else item.obj

    def find_all(self, resource: Resource) -> list[Obj]:
        return [item.obj for item in self.kind(resource).items.values()]

    def find_in(self, resource: Resource, namespace: str) -> list[Obj]:
        kind = self.kind(resource)
        return [kind.items[key].obj for key in kind.keys(namespace)]

    async def current(self, resource: Resource, namespace: str, name: str) -> Item:
        """The newest state. Raises NotFound."""
        # Who writes is answered when the cache has it: without a write to this very key under way
        # there is nothing to wait for.
        key = resource.storage_prefix + (f"{namespace}/{name}" if namespace else name)
        if self.store.shared or self._pending.may_be_stale(key, self.cache.revision):
            await self.cache.fresh()
        return self.cached(resource, namespace, name)

    def cached(self, resource: Resource, namespace: str, name: str) -> Item:
        """The state that the cache has. Raises NotFound."""
        kind, key = self.kind(resource), f"{namespace}/{name}" if namespace else name
        if kind.unreadable and key in kind.unreadable:
            # Not 404: whoever lives off it would be taken for an orphan.
            place = resource.storage_prefix + key
            raise InternalError(UNREADABLE.format(place, kind.unreadable[key]))
        item = kind.items.get(key)
        if item is None:
            raise not_found(resource.plural, resource.group, name)
        return item

    async def insert(self, resource: Resource, obj: Obj, terms: "Terms") -> Item:
        """Raises AlreadyExists."""
        ordered = canonical(obj)
        value = _bind(stored_bytes(ordered))
        name = ordered["metadata"]["name"]
        key = resource.storage_key(ordered["metadata"].get("namespace", ""), name)
        inner = key[len(resource.storage_prefix) :]
        if terms.dry_run:
            if inner in self.kind(resource).items:
                raise self._taken(resource, inner, name)
            return Item(inner, 0, ordered, value)
        with self._pending.of(key), self.cache.hand_over(key, value, ordered):
            try:
                write = self.store.create(key, value, ttl_seconds=terms.ttl_seconds)
                revision = await terms.written(self._measured.timed("create", resource, write))
            except KeyExists as error:
                raise self._taken(resource, inner, name) from error
            except StoreError as error:
                raise api_error_of(error) from error
            return await self._item_at(resource, inner, value, revision)

    def _taken(self, resource: Resource, key: str, name: str) -> AlreadyExists:
        error = already_exists(resource.plural, resource.group, name)
        item = self.kind(resource).items.get(key)
        if item is not None and is_deleted(item.obj):
            told = f"object is being deleted: {error.message}"
            return AlreadyExists(told, details=error.details)
        return error

    async def replace(self, resource: Resource, item: Item, obj: Obj, terms: "Terms") -> Item:
        """Raises Stale."""
        if "selfLink" in obj["metadata"] and not terms.dry_run:  # as upstream: never stored
            obj = {**obj, "metadata": {**obj["metadata"]}}
            del obj["metadata"]["selfLink"]
        ordered = canonical(obj)
        value = stored_bytes(ordered)
        if same_content(item, value, ordered):
            terms.commit()
            return item
        _bind(value)
        key = resource.storage_prefix + item.key
        if terms.dry_run:
            ordered["metadata"]["resourceVersion"] = str(item.revision)
            return Item(item.key, item.revision, ordered, stored_bytes(ordered))
        with self._pending.of(key), self.cache.hand_over(key, value, ordered):
            try:
                write = self.store.update(key, value, item.revision, ttl_seconds=terms.ttl_seconds)
                revision = await terms.written(self._measured.timed("update", resource, write))
            except RevisionMismatch as error:
                await self._caught_up(error)
                raise Stale from error
            except StoreError as error:
                raise api_error_of(error) from error
            return await self._item_at(resource, item.key, value, revision)

    async def remove(self, resource: Resource, item: Item, terms: "Terms") -> None:
        """Raises Stale."""
        if terms.dry_run:
            return
        key = resource.storage_prefix + item.key
        with self._pending.of(key):
            try:
                write = self.store.delete(key, item.revision)
                revision = await terms.written(self._measured.timed("delete", resource, write))
            except RevisionMismatch as error:
                await self._caught_up(error)
                raise Stale from error
            except StoreError as error:
                raise api_error_of(error) from error
            await self.cache.reached(revision)

    async def _caught_up(self, error: RevisionMismatch) -> None:
        """Whoever tries again must see the write that was faster, also one of another server."""
        if error.current is not None:
            await self.cache.reached(error.current.revision)

    async def _item_at(self, resource: Resource, key: str, value: bytes, revision: int) -> Item:
        await self.cache.reached(revision)
        item = self.kind(resource).items.get(key)
        if item is not None and item.revision == revision:
            return item
        return item_from(key, value, revision, None)  # already written over by somebody else


def answer_of(resource: Resource, item: Item, code: int = 200) -> Answer:
    """An item in the version that was asked for. Raises NotConverted."""
    if resource.custom is not None:
        item = shown_item(resource, item)
    if resource.stored_in == ("", ""):
        return Answer(item.obj, None if type(item) is SharedItem else item.data, code)
    return Answer(convert.from_stored(resource, item.obj), None, code)


def api_error_of(error: StoreError) -> ApiError:
    if isinstance(error, StoreClosed):
        return ServiceUnavailable("the server's store is closed")
    if isinstance(error, Unavailable):
        return Timeout(f"the server's store does not answer: {error}")
    return InternalError(f"Internal error occurred: {error}")
