"""Ownership graph: ownerReferences over all kinds, kept by the changes of informers.

Job: fold one change into the graph and name the objects that the garbage collector must look at.
Invariant: `dependents_of(uid)` are exactly the known objects whose ownerReferences name `uid`.
Invariant: an object that needs a look is named by the change that made it so; a change that alters
    nothing (a status, a label) names nobody.
Owner: one garbage collector.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, is_deleted, key_of, meta_of, namespace_of, uid_of
from sampan.api.resources import Resource, by_kind
from sampan.controllers.cluster.custom_kinds import KindOf
from sampan.core.bounded import Recent
from sampan.core.fast_dataclass import dataclass

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
ABSENT_REMEMBERED = 500  # as upstream's absentOwnerCache


@dataclass(frozen=True, slots=True)
class Item:
    """One object, by its coordinates and its identity."""

    resource: str  # storage prefix: the same in whichever version it is named
    key: str
    uid: str


def owners_of(obj: Obj) -> list[Obj]:
    owners: list[Obj] = meta_of(obj).get("ownerReferences") or []
    return owners


def has_finalizer(obj: Obj, finalizer: str) -> bool:
    return finalizer in (meta_of(obj).get("finalizers") or ())


def waits_for_dependents(obj: Obj) -> bool:
    """Deleted in the foreground: it goes when its dependents have gone."""
    return is_deleted(obj) and has_finalizer(obj, FOREGROUND)


def waits_for_orphaning(obj: Obj) -> bool:
    return is_deleted(obj) and has_finalizer(obj, ORPHAN)


def named_by(reference: Obj, namespace: str, kind_of: KindOf = by_kind) -> Item | None:
    """The object that an ownerReference in `namespace` names; None for an unknown kind, and for a
    namespaced owner of something that has no namespace."""
    resource = kind_of(reference.get("apiVersion", ""), reference.get("kind", ""))
    if resource is None or (resource.namespaced and not namespace):
        return None
    name = reference.get("name", "")
    key = f"{namespace}/{name}" if resource.namespaced else name
    return Item(resource.storage_prefix, key, reference.get("uid", ""))


class ObjectGraph:
    def __init__(self, kind_of: KindOf = by_kind) -> None:
        self._kind_of = kind_of
        self._items: dict[str, Item] = {}  # by uid
        self._dependents: dict[str, dict[str, Item]] = {}  # owner's uid → uid → item
        self._waiting: set[str] = set()  # uids of those deleted in the foreground
        self._absent: Recent[Item, None] = Recent(ABSENT_REMEMBERED)

    def __len__(self) -> int:
        return len(self._items)

    def find(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def dependents_of(self, uid: str) -> list[Item]:
        return list(self._dependents.get(uid, {}).values())

    def is_known_absent(self, item: Item) -> bool:
        return item in self._absent

    def found_absent(self, item: Item) -> None:
        """The server said so. A uid never comes back, so this stays true."""
        self._absent[item] = None

    def changed(self, resource: Resource, old: Obj | None, new: Obj | None) -> list[Item]:
        if new is None:
            return [] if old is None else self._remove(resource, old)
        if old is None:
            return self._added(resource, new)
        return self._update(resource, old, new)

    def _added(self, resource: Resource, obj: Obj) -> list[Item]:
        item = Item(resource.storage_prefix, key_of(obj), uid_of(obj))
        self._items[item.uid] = item
        looks = self._link(item, obj, owners_of(obj))
        # Dependents that were seen first may have named this owner at another place.
        looks += [
            entry for entry in self.dependents_of(item.uid) if not _fits(entry, item, resource)
        ]
        return looks + self._started(item, None, obj)

    def _update(self, resource: Resource, old: Obj, new: Obj) -> list[Item]:
        looks: list[Item] = []
        item = self._items.get(uid_of(new))
        if item is None:
            return self._added(resource, new)
        before, after = owners_of(old), owners_of(new)
        if before != after:
            names = {reference.get("uid", "") for reference in after}
            gone = [reference for reference in before if reference.get("uid", "") not in names]
            for reference in gone:
                self._unlink(item, reference)
            looks += self._link(item, new, after)
            looks += self._waiting_owners(before)
        return looks + self._started(item, old, new)

    def _remove(self, resource: Resource, obj: Obj) -> list[Item]:
        uid = uid_of(obj)
        item = self._items.pop(uid, None) or Item(resource.storage_prefix, key_of(obj), uid)
        self._waiting.discard(uid)
        for reference in owners_of(obj):
            self._unlink(item, reference)
        dependents = self.dependents_of(uid)
        if dependents:
            self.found_absent(item)
        return dependents + self._waiting_owners(owners_of(obj))

    def _link(self, item: Item, obj: Obj, owners: Iterable[Obj]) -> list[Item]:
        """Enter `item` under its owners; it needs a look unless all of them are known and stay."""
        suspicious = False
        for reference in owners:
            uid = reference.get("uid", "")
            self._dependents.setdefault(uid, {})[item.uid] = item
            owner = self._items.get(uid)
            misnamed = (
                owner is None or named_by(reference, namespace_of(obj), self._kind_of) != owner
            )
            suspicious = suspicious or misnamed or uid in self._waiting
        return [item] if suspicious else []

    def _unlink(self, item: Item, reference: Obj) -> None:
        uid = reference.get("uid", "")
        dependents = self._dependents.get(uid)
        if dependents is not None:
            dependents.pop(item.uid, None)
            if not dependents:
                del self._dependents[uid]

    def _waiting_owners(self, owners: Iterable[Obj]) -> list[Item]:
        """Owners that may have waited for just this."""
        uids = [reference.get("uid", "") for reference in owners]
        return [self._items[uid] for uid in uids if uid in self._waiting and uid in self._items]

    def _started(self, item: Item, old: Obj | None, new: Obj) -> list[Item]:
        """Deletion with a finalizer of ours began (or was there when we first saw the object)."""
        if not waits_for_dependents(new):
            self._waiting.discard(item.uid)
        elif old is None or not waits_for_dependents(old):
            self._waiting.add(item.uid)
            return [item, *self.dependents_of(item.uid)]
        if waits_for_orphaning(new) and (old is None or not waits_for_orphaning(old)):
            return [item]
        return []


def _fits(dependent: Item, owner: Item, owner_resource: Resource) -> bool:
    """Owner and dependent are in one namespace, or the owner is in none."""
    if not owner_resource.namespaced:
        return True
    return dependent.key.rpartition("/")[0] == owner.key.rpartition("/")[0]
