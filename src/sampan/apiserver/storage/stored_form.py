"""Stored form of an object: its bytes, and where its resourceVersion goes.

Job: canonical JSON without resourceVersion, and the same bytes with a revision spliced in. Pure.
Invariant: stored bytes begin with apiVersion, kind, metadata, in this order, and metadata is not
    empty: so the first `"metadata":{` is the object's own, and a revision can be put behind it
    without parsing.
Invariant: bytes that are no object, whoever wrote them, are NotAnObject and nothing else.
"""

from collections.abc import Sequence

import orjson

from sampan.api.calls import Item
from sampan.api.objects import Obj
from sampan.apiserver.storage.compact_items import PackedItem, SharedItem
from sampan.apiserver.storage.packing import Packed, Patterns
from sampan.apiserver.storage.sharing import SharedValues
from sampan.core.patterns import lazy_pattern

_METADATA = b'"metadata":{'
_REVISION = b'"resourceVersion":"'
_REASON = b'"reason":"'
_SELDOM_READ = b'{"apiVersion":"v1","kind":"Event",'
_NOTHING: Obj = {}
_ALIKE = (
    b'{"apiVersion":"v1","kind":"Pod",',
    b'{"apiVersion":"v1","kind":"Node",',
    b'{"apiVersion":"coordination.k8s.io/v1","kind":"Lease",',
)
WITH_EQUAL_PARTS = ("Pod", "Node")
_ALIKE_BYTES = 16 * 1024  # what is larger has little in common with others, and takes long to write
_SHARED_LEVELS = 3  # containers[0].volumeMounts[0]: one of them has a name of the pod's own
_SHARED_METADATA = ("namespace", "labels", "annotations", "ownerReferences", "creationTimestamp")
# How stored bytes begin. Others may have written them in another order, or with a revision.
_IN_ORDER = lazy_pattern(rb'\{"apiVersion":"[^"\\]*","kind":"[^"\\]*","metadata":\{"')
_MAPS, _LISTS = ("labels", "annotations"), ("ownerReferences", "finalizers", "managedFields")
_PARTS = ("spec", "status")
_MAP_OR_NONE, _LIST_OR_NONE = (dict, type(None)), (list, type(None))
_WRITTEN_LEVELS = 254  # more than a serialiser goes down


class NotAnObject(ValueError):
    """Stored bytes that are none of an object."""


def canonical(obj: Obj) -> Obj:
    """A shallow copy in the order of the stored bytes, with metadata of its own and without a
    resourceVersion (the store's revision is the only truth about that)."""
    metadata = dict(obj["metadata"])
    metadata.pop("resourceVersion", None)
    ordered: Obj = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
    for key, value in obj.items():
        if key not in ordered:
            ordered[key] = value
    return ordered


def stored_bytes(ordered: Obj) -> bytes:
    """The bytes of what `canonical` returned."""
    # A copy is as long as it says; the original keeps the buffer that it was written into, of
    # several KiB for a pod, for as long as anybody has it.
    return bytes(memoryview(orjson.dumps(ordered)))


def with_revision(value: bytes, revision: int) -> bytes:
    at = value.index(_METADATA) + len(_METADATA)
    return b'%b"resourceVersion":"%d",%b' % (value[:at], revision, value[at:])


def item_from(
    key: str,
    value: bytes,
    revision: int,
    obj: Obj | None,
    patterns: Patterns | None = None,
    kind: str = "",
) -> Item:
    """The cache's item for stored bytes; `obj` is their parsed form, where the writer had it.
    `patterns`: of an item that is kept for long. `kind`: what is stored there, where only one is.
    Raises NotAnObject."""
    if obj is None:
        obj, value = read_stored(value, kind)
    if value.startswith(_SELDOM_READ):
        text = with_revision(value, revision)
        packed = Packed(text, None) if patterns is None else patterns.pack(_reason(value), text)
        return PackedItem(key, revision, packed)
    obj["metadata"]["resourceVersion"] = str(revision)
    if is_alike(value):
        return SharedItem(key, revision, obj, len(value))
    return Item(key, revision, obj, with_revision(value, revision))


def read_stored(value: bytes, kind: str) -> tuple[Obj, bytes]:
    """Of bytes that anybody may have written: the object, and its bytes as we store them. Raises
    NotAnObject."""
    try:
        obj = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise NotAnObject(f"no JSON: {error}") from error
    if not is_object(obj, kind):
        raise NotAnObject(f"no {kind or 'object'}, or one without a name or with wrong types")
    try:
        if value.count(b"[") + value.count(b"{") > _WRITTEN_LEVELS:
            orjson.dumps(obj)
        if not _IN_ORDER.match(value) or "resourceVersion" in obj["metadata"]:
            obj = canonical(obj)
            value = stored_bytes(obj)
    except orjson.JSONEncodeError as error:
        raise NotAnObject(f"nested too deeply: {error}") from error
    return obj, value


def is_object(obj: object, kind: str) -> bool:
    """Whether it has what everybody looks at without asking; of a custom kind, which has a group
    with a dot, spec may be anything."""
    if type(obj) is not dict or type(obj.get("metadata")) is not dict:
        return False
    metadata, version = obj["metadata"], obj.get("apiVersion")
    if type(version) is not str or type(metadata.get("name")) is not str:
        return False
    if obj.get("kind") != kind if kind else type(obj.get("kind")) is not str:
        return False
    for key in _MAPS:  # of every object that is read at a start: loops cost half of generators
        if type(metadata.get(key)) not in _MAP_OR_NONE:
            return False
    for key in _LISTS:
        if type(metadata.get(key)) not in _LIST_OR_NONE:
            return False
    if "." in version:
        return True
    return type(obj.get("spec")) in _MAP_OR_NONE and type(obj.get("status")) in _MAP_OR_NONE


def is_alike(value: bytes) -> bool:
    """Whether it is of a kind of which many are alike."""
    return value.startswith(_ALIKE) and len(value) <= _ALIKE_BYTES


def _reason(event: bytes) -> bytes:
    """Events of one reason are alike."""
    start = event.find(_REASON) + len(_REASON)
    return event[start : event.find(b'"', start)]


def share_parts(item: Item, before: Item | None, sharing: SharedValues) -> None:
    """Most of a pod is its template's: containers, volumes, tolerations, labels, owners, and which
    fields belong to whom. Parsed, that takes several times the memory of what is the pod's own; so
    with nodes of one type. Of a new item, which nobody has seen."""
    obj = item.obj if type(item) is SharedItem else _NOTHING
    if obj.get("kind") not in WITH_EQUAL_PARTS:
        return
    old: Obj = before.obj if before is not None else _NOTHING
    for name in _PARTS:
        part = obj.get(name)
        if part:
            obj[name] = _shared_part(part, old.get(name) or _NOTHING, sharing)
    metadata, was = obj["metadata"], old.get("metadata") or _NOTHING
    for key in _SHARED_METADATA:
        if key in metadata:
            value = metadata[key]
            same = key in was and was[key] == value
            metadata[key] = was[key] if same else sharing.shared(value)
    entries = metadata.get("managedFields")
    if entries:
        # Who wrote it when, and which address it has, is its own; the fields are everybody's.
        known = was.get("managedFields") or ()
        metadata["managedFields"] = [_shared_entry(entry, known, sharing) for entry in entries]


def _shared_part(part: Obj, old: Obj, sharing: SharedValues) -> Obj:
    """What the object had before is shared already; to compare costs less than to look it up."""
    if part == old:
        return old
    return {
        key: old[key] if key in old and value == old[key] else sharing.shared(value, _SHARED_LEVELS)
        for key, value in part.items()
    }


def _shared_entry(entry: Obj, known: Sequence[Obj], sharing: SharedValues) -> Obj:
    for before in known:
        if entry == before:
            return before
    found: Obj = sharing.shared(entry, _SHARED_LEVELS)
    return found


def at_revision(item: Item, revision: int) -> Item:
    """The same content under a later revision: what a deletion shows of the object."""
    metadata = {**item.obj["metadata"], "resourceVersion": str(revision)}
    obj = {**item.obj, "metadata": metadata}
    if type(item) is SharedItem:
        return SharedItem(item.key, revision, obj, item.size)
    data = item.data
    start = data.index(_METADATA) + len(_METADATA) + len(_REVISION)
    end = data.index(b'"', start)
    return Item(item.key, revision, obj, b"%b%d%b" % (data[:start], revision, data[end:]))


def same_content(item: Item, value: bytes, ordered: Obj) -> bool:
    """Whether writing `value`, the bytes of `ordered`, over `item` would change nothing. The same
    fields in another order are as long, and only then worth a second look."""
    if type(item) is not SharedItem:
        written = with_revision(value, item.revision)
        if written == item.data:
            return True
        if len(written) != len(item.data):
            return False
    stored = dict(item.obj["metadata"])
    stored.pop("resourceVersion", None)
    return {**item.obj, "metadata": stored} == ordered
