"""managedFields of every write that is no apply.

Job: the entries after a write, from the object before and after it. Pure.
Invariant: a field has at most one owner by Update; whoever changes a field owns it from then on.
Invariant: entries are never changed in place, and stay as they are where a write changes nothing.
"""

from functools import lru_cache
from operator import itemgetter

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_sets import (
    FieldSet,
    Patterns,
    canonical_set,
    difference,
    in_canonical_order,
    includes,
    recursive_difference,
    union,
    within,
)
from sampan.api.apply.field_types import Sets, compare
from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    required_value,
    too_long,
)
from sampan.api.objects import Obj, meta_of
from sampan.core.fast_dataclass import dataclass

APPLY, UPDATE = "Apply", "Update"
MAX_UPDATERS = 10  # more than that are put together, the oldest first
OLD_CHANGES = "ancient-changes"
MANAGER_LENGTH = 128

# What everybody writes and nobody owns.
UNOWNED_METADATA = frozenset({
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
    "managedFields", "resourceVersion",
})  # fmt: skip
_STRIPPED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {".": {}, **{f"f:{key}": {} for key in sorted(UNOWNED_METADATA)}},
}


_place = itemgetter("operation", "time", "manager", "apiVersion")


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, through which door, and when."""

    manager: str
    api_version: str
    time: str
    subresource: str = ""
    ignored: FieldSet | None = None  # fields that this door does not change, whatever is sent
    included: Patterns | None = None  # where it is easier said: all that it may change

    def writes(self, fields: FieldSet) -> FieldSet:
        """Those that can be written through this door."""
        if self.ignored:
            fields = recursive_difference(fields, self.ignored)
        return fields if self.included is None else within(fields, self.included)


def manager_from_user_agent(agent: str) -> str:
    """`kubectl`, from `kubectl/v1.32.0 (linux/amd64)`."""
    return _manager(agent[:1024])


@lru_cache(maxsize=256)
def _manager(agent: str) -> str:
    printable = "".join(item for item in agent.partition("/")[0] if item.isprintable())
    return printable.encode()[:MANAGER_LENGTH].decode(errors="ignore")


def entries_of(obj: Obj) -> list[Obj]:
    found: list[Obj] = meta_of(obj).get("managedFields") or []
    return found


def chosen_entries(new: Obj, live: Obj, subresource: str = "") -> list[Obj]:
    """The entries that a write starts from: those that the caller has sent, where they can be read;
    those of the live object where it sent none (it may not know of them), or writes through a
    subresource."""
    given, own = meta_of(new).get("managedFields"), entries_of(live)
    if given is None or subresource or given is own or given == own:
        return own
    if given in ([], [{}]):
        return []  # how a caller says that it wants none
    try:
        return [_canonical_entry(entry) for entry in given]
    except ValueError:
        return own


def after_write(fields: FieldSchema, live: Obj, new: Obj, writer: Writer) -> list[Obj]:
    """The entries of `new`, which a create, update or patch has made of `live` ({} for a create).
    `new` itself may still have the entries that its caller sent."""
    entries = chosen_entries(new, live, writer.subresource)
    if live and not entries:
        return []  # nobody kept track before: only an apply starts that
    return _after(fields, live, new, entries, writer)


def first_entries(fields: FieldSchema, live: Obj, writer: Writer) -> list[Obj]:
    """All of an object that nobody kept track of, as one writer's."""
    return _after(fields, {}, live, [], writer)


def _after(
    fields: FieldSchema, live: Obj, new: Obj, entries: list[Obj], writer: Writer
) -> list[Obj]:
    changes = Changes(fields, live, new, writer)
    changed, removed = changes.at(writer.api_version)
    if not changed and not removed:
        return entries
    if not removed:
        own = _entry_with_all(entries, writer, changed)
        if own is not None:  # nothing but its time is new, and perhaps what others have left
            others = [entry for entry in entries if entry is not own]
            changed, entries = own["fieldsV1"], others
    left = [kept for entry in entries if (kept := changes.left_of(entry)) is not None]
    if changed:
        left = with_entry(left, new_entry(writer, UPDATE, changed))
    return with_oldest_merged(left)


def _entry_with_all(entries: list[Obj], writer: Writer, fields: FieldSet) -> Obj | None:
    """The writer's own, where these are in it already."""
    for entry in entries:
        if (
            entry.get("manager") == writer.manager
            and entry.get("operation") == UPDATE
            and entry.get("apiVersion") == writer.api_version
            and (entry.get("subresource") or "") == writer.subresource
        ):
            return entry if includes(entry.get("fieldsV1") or {}, fields) else None
    return None


class Changes:
    """What a write changes, seen in each version that somebody has written in."""

    def __init__(self, fields: FieldSchema, live: Obj, new: Obj, writer: Writer) -> None:
        self._fields = fields
        self._live, self._new = live, new
        self._writer = writer
        self._found: dict[str, Sets | None] = {}

    def at(self, api_version: str) -> Sets:
        """(changed, removed); nothing in a version that is not served."""
        return self._at(api_version) or ({}, {})

    def left_of(self, entry: Obj) -> Obj | None:
        """The entry without what the write has taken from it; None when nothing is left."""
        sets = self._at(str(entry.get("apiVersion") or ""))
        if sets is None:
            return None
        before: FieldSet = entry.get("fieldsV1") or {}
        if not _meet(before, sets[0]) and not _meet(before, sets[1]):
            return entry if before else None
        after = difference(difference(before, sets[0]), sets[1])
        if not after:
            return None
        return entry if after == before else {**entry, "fieldsV1": after}

    def _at(self, api_version: str) -> Sets | None:
        if api_version not in self._found:
            self._found[api_version] = self._compare(api_version)
        return self._found[api_version]

    def _compare(self, api_version: str) -> Sets | None:
        new = self._fields.in_version(self._new, api_version)
        kind = "" if new is None else str(new.get("kind"))
        root = None if new is None else self._fields.root(api_version, kind)
        if new is None or root is None:
            return None
        bare = self._fields.bare(api_version, kind)  # was not said: it is nobody's
        live = self._fields.in_version(self._live, api_version) if self._live else bare
        if live is None:
            return None
        changed, removed = compare(root, live, new)
        return self._ours(changed, api_version), self._ours(removed, api_version)

    def _ours(self, fields: FieldSet, api_version: str) -> FieldSet:
        """Without what is the server's, and what cannot be written through this door."""
        if not fields:
            return fields
        left = without_server_fields(fields)
        return self._writer.writes(left) if api_version == self._writer.api_version else left


def new_entry(writer: Writer, operation: str, fields: FieldSet) -> Obj:
    entry: Obj = {
        "manager": writer.manager,
        "operation": operation,
        "apiVersion": writer.api_version,
        "time": writer.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if writer.subresource:
        entry["subresource"] = writer.subresource
    return entry


def with_entry(entries: list[Obj], entry: Obj) -> list[Obj]:
    """The entries with one more, or with what the same writer had before made larger. Its set is
    in canonical order."""
    others, manager = [], entry["manager"]
    for item in entries:
        if (item.get("manager") or "") == manager and identity(item) == identity(entry):
            both = union(item.get("fieldsV1") or {}, entry["fieldsV1"])
            entry = {**entry, "fieldsV1": in_canonical_order(both)}
        else:
            others.append(item)
    return in_order([*others, entry])


def without_server_fields(fields: FieldSet) -> FieldSet:
    return difference(fields, _STRIPPED) if _meet(_STRIPPED, fields) else fields


def _meet(one: FieldSet, two: FieldSet) -> bool:
    """Have they anything in common, be it a way to different members?"""
    return not one.keys().isdisjoint(two)


def identity(entry: Obj) -> tuple[str, str, str, str]:
    """Who an entry belongs to. An applier has one entry, whatever version it speaks."""
    operation = entry.get("operation") or ""
    version = "" if operation == APPLY else entry.get("apiVersion") or ""
    return entry.get("manager") or "", operation, version, entry.get("subresource") or ""


def in_order(entries: list[Obj]) -> list[Obj]:
    try:
        places = {*map(_place, entries)}
        if len(places) == len(entries):  # these tell them apart
            return sorted(entries, key=_place)
    except (KeyError, TypeError):
        pass  # of an old object, or sent by somebody
    return sorted(
        entries,
        key=lambda entry: (
            entry.get("operation") or "", entry.get("time") or "", entry.get("manager") or "",
            entry.get("apiVersion") or "", entry.get("subresource") or "",
        ),
    )  # fmt: skip


def with_oldest_merged(entries: list[Obj]) -> list[Obj]:
    """The oldest updaters put together, where there are too many; one bucket per version."""
    if len(entries) <= MAX_UPDATERS:
        return entries
    updaters = [item for item in in_order(entries) if item.get("operation") == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return entries
    buckets: dict[str, list[Obj]] = {}
    for updater in updaters:  # oldest first
        bucket = buckets.setdefault(str(updater.get("apiVersion")), [])
        if excess <= 0:
            break
        excess -= bool(bucket)
        bucket.append(updater)
    merged = [group for group in buckets.values() if len(group) > 1]
    gone = {id(item) for group in merged for item in group}
    kept = [entry for entry in entries if id(entry) not in gone]
    for group in merged:
        together: FieldSet = {}
        for item in group:
            together = union(together, item.get("fieldsV1") or {})
        ordered = in_canonical_order(together)
        bucket_entry = {**group[-1], "manager": OLD_CHANGES, "fieldsV1": ordered}
        bucket_entry.pop("subresource", None)
        kept = with_entry(kept, bucket_entry)
    return in_order(kept)


def same_but_times(one: list[Obj], two: list[Obj]) -> bool:
    return len(one) == len(two) and all(
        {**a, "time": ""} == {**b, "time": ""} for a, b in zip(one, two, strict=True)
    )


def _canonical_entry(entry: Obj) -> Obj:
    """Raises ValueError."""
    if entry.get("fieldsType") != "FieldsV1" or entry.get("operation") not in (APPLY, UPDATE):
        raise ValueError("not an entry of managedFields")
    fields = in_canonical_order(canonical_set(entry.get("fieldsV1") or {}))
    return {**entry, "fieldsV1": fields}


def patch_errors(patch_type: str, force: bool | None, manager: str) -> list[FieldError]:
    """What is wrong with a patch's say about who owns what."""
    wrong = []
    if patch_type != "apply" and force is not None:
        wrong.append(field_forbidden("force", "may not be specified for non-apply patch"))
    if patch_type == "apply" and not manager:
        wrong.append(required_value("fieldManager", "is required for apply patch"))
    return wrong + manager_errors(manager)


def manager_errors(manager: str) -> list[FieldError]:
    wrong = []
    if len(manager.encode()) > MANAGER_LENGTH:
        wrong.append(too_long("fieldManager", MANAGER_LENGTH))
    for at, item in enumerate(manager):
        if not item.isprintable():
            why = f"invalid character U+{ord(item):04X} (at position {len(manager[:at].encode())})"
            wrong.append(invalid_value("fieldManager", manager, why))
    return wrong
