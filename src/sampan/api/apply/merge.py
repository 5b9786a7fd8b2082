"""Server-side apply: merge of a configuration, conflicts, fields given up.

Job: live object and configuration → new object with its managedFields, or the conflicts. Pure.
Invariant: without force, no field that another writer owns is changed.
Invariant: a field that the applier leaves out, having owned it alone, is gone.
Invariant: applying the same configuration again changes nothing.
"""

from dataclasses import replace

import orjson

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_sets import (
    FieldSet,
    Path,
    difference,
    in_canonical_order,
    intersection,
    path_text,
    paths,
    union,
)
from sampan.api.apply.field_types import Node, compare
from sampan.api.apply.managed_fields import (
    APPLY,
    UPDATE,
    Changes,
    Writer,
    entries_of,
    first_entries,
    identity,
    in_order,
    new_entry,
    with_oldest_merged,
    without_server_fields,
)
from sampan.api.apply.typed_values import less, merged, problems, set_of
from sampan.api.errors import BadRequest, Conflict, Failure
from sampan.api.objects import Obj, annotations_of, meta_of
from sampan.core.fast_dataclass import dataclass

KUBECTL = "kubectl"  # its applies take over what its client-side applies have written
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY = "before-first-apply"
ANNOTATIONS_LIMIT = 256 * 1024


@dataclass(frozen=True, slots=True)
class Disputed:
    """A field that the configuration would take from somebody."""

    owner: Obj  # its entry
    path: Path


@dataclass(frozen=True, slots=True)
class Applied:
    obj: Obj  # shares parts with the live object and the configuration
    entries: list[Obj]


def apply(fields: FieldSchema, live: Obj, config: Obj, writer: Writer, force: bool) -> Applied:
    """`live` is {} where the object does not exist yet. Raises BadRequest, Conflict."""
    root = _checked_root(fields, config, writer)
    entries = entries_of(live)
    if live and not entries:
        before = replace(writer, manager=BEFORE_FIRST_APPLY)
        entries = first_entries(fields, live, before)
    attempt = _Attempt(fields, root, _without_entries(live), config, writer, entries)
    disputed = [] if force else attempt.disputed()
    if disputed and writer.manager == KUBECTL:
        allowed = _written_by_client_side_apply(fields, live, writer)
        disputed = [item for item in disputed if not _has(allowed, item.path)]
    if disputed:
        raise conflict_of(disputed)
    result = attempt.result()
    if writer.manager == KUBECTL and annotations_of(result.obj).get(LAST_APPLIED):
        return Applied(_with_last_applied(result.obj, config), result.entries)
    return result


class _Attempt:
    """One configuration over one object."""

    def __init__(
        self, fields: FieldSchema, root: Node, live: Obj, config: Obj, writer: Writer,
        entries: list[Obj],
    ) -> None:  # fmt: skip
        self._live, self._writer = live, writer
        mine = new_entry(writer, APPLY, writer.writes(set_of(root, config)))
        self._last = next((entry for entry in entries if identity(entry) == identity(mine)), None)
        self._others = [entry for entry in entries if entry is not self._last]
        self._mine = mine
        together: Obj = merged(root, live, config)
        managed = [*self._others, mine]
        self._new = _without_dropped_fields(fields, together, self._last, managed)
        self._changes = Changes(fields, live, self._new, writer)

    def disputed(self) -> list[Disputed]:
        found = []
        for entry in self._others:
            changed, _ = self._changes.at(str(entry.get("apiVersion") or ""))
            both = intersection(entry.get("fieldsV1") or {}, changed)
            found += [Disputed(entry, path) for path in paths(both)]
        return found

    def result(self) -> Applied:
        kept = [one for entry in self._others if (one := self._changes.left_of(entry)) is not None]
        own = in_canonical_order(without_server_fields(self._mine["fieldsV1"]))
        mine = {**self._mine, "fieldsV1": own}
        if self._changes_nothing():
            # As upstream: then not even the time of the entry, which a new one does not have yet.
            last = self._last or {}
            mine = {key: value for key, value in mine.items() if key != "time"}
            mine |= {"time": last["time"]} if last.get("time") else {}
            mine = last if mine == last else mine
        if mine["fieldsV1"]:
            kept.append(mine)
        return Applied(self._new, with_oldest_merged(in_order(kept)))

    def _changes_nothing(self) -> bool:
        if not self._live:
            return False
        changed, removed = self._changes.at(self._writer.api_version)
        return not changed and not removed


def _without_dropped_fields(
    fields: FieldSchema, together: Obj, last: Obj | None, managed: list[Obj]
) -> Obj:
    """Without what the applier owned before, does not ask for now, and nobody else owns."""
    if last is None or not last.get("fieldsV1"):
        return together
    version, wanted_version = str(last.get("apiVersion")), str(together.get("apiVersion"))
    full = fields.in_version(together, version)
    root = None if full is None else fields.root(version, str(together.get("kind")))
    if full is None or root is None:
        return together
    before = root.named(last["fieldsV1"])
    pruned = less(root, full, before)
    pruned = _with_owned(fields, full, pruned, managed, version)
    gone = difference(root.named(set_of(root, full)), root.named(set_of(root, pruned)))
    pruned = less(root, full, intersection(gone, before))
    found = fields.in_version(pruned, wanted_version)
    assert found is not None, wanted_version
    return found


def _with_owned(
    fields: FieldSchema, full: Obj, pruned: Obj, managed: list[Obj], version: str
) -> Obj:
    """What was pruned, but is somebody's: the other writers', or the applier's of now."""
    owned: dict[str, FieldSet] = {version: {}}  # this one first: conversions may need its fields
    for entry in managed:
        own_version = str(entry.get("apiVersion"))
        owned[own_version] = union(owned.get(own_version, {}), entry.get("fieldsV1") or {})
    for own_version, fields_owned in owned.items():
        there = fields.in_version(full, own_version)
        left = fields.in_version(pruned, own_version)
        root = fields.root(own_version, str(full.get("kind")))
        if there is None or left is None or root is None:
            continue
        kept = union(root.named(set_of(root, left)), root.named(fields_owned))
        shown = less(root, there, difference(root.named(set_of(root, there)), kept))
        back = fields.in_version(shown, version)
        pruned = pruned if back is None else back
    return pruned


def _checked_root(fields: FieldSchema, config: Obj, writer: Writer) -> Node:
    kind = str(config.get("kind") or "")
    meta = config.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    root = fields.root(writer.api_version, kind)
    if root is None:
        raise BadRequest(f'no kind "{kind}" is registered for version "{writer.api_version}"')
    wrong = list(problems(root, config))
    if wrong:
        text = wrong[0] if len(wrong) == 1 else "errors:\n  " + "\n  ".join(wrong)
        raise Failure(f"failed to create typed patch object ({which(config)}): {text}")
    return root


def which(obj: Obj) -> str:
    """Namespace, name and kind, for messages; of what need not be an object yet."""
    meta = obj.get("metadata")
    names = [meta.get(key) if isinstance(meta, dict) else "" for key in ("namespace", "name")]
    where = "/".join(name if isinstance(name, str) else "" for name in names)
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    return f"{where}; {group}/{version}, Kind={obj.get('kind')}"


def conflict_of(disputed: list[Disputed]) -> Conflict:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_owner_text(item.owner)}",
            "field": path_text(item.path),
        }
        for item in disputed
    ]
    if len(disputed) == 1:
        message = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        message = f"{len(disputed)} conflicts: {_conflicts_text(disputed)}"
    return Conflict(f"Apply failed with {message}", details={"causes": causes})


def _conflicts_text(disputed: list[Disputed]) -> str:
    by_owner: dict[tuple[str, str, str, str], list[Disputed]] = {}
    for item in disputed:
        by_owner.setdefault(identity(item.owner), []).append(item)
    lines = []
    for _, group in sorted(by_owner.items()):
        lines.append(f"conflicts with {_owner_text(group[0].owner)}:")
        lines += [f"- {path_text(item.path)}" for item in group]
    return "\n".join(lines)


def _owner_text(owner: Obj) -> str:
    text = orjson.dumps(owner.get("manager") or "").decode()
    if owner.get("subresource"):
        text += f" with subresource {orjson.dumps(owner['subresource']).decode()}"
    if owner.get("operation") == UPDATE:
        text += f" using {owner.get('apiVersion')}"
    return text


def _written_by_client_side_apply(fields: FieldSchema, live: Obj, writer: Writer) -> FieldSet:
    """What the annotation of a client-side apply says and the object still has."""
    try:
        last = orjson.loads(annotations_of(live).get(LAST_APPLIED) or "null")
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != writer.api_version:
        return {}
    root = fields.root(writer.api_version, str(live.get("kind")))
    if root is None:
        return {}
    try:
        changed, removed = compare(root, last, live)
        spoken_for = set_of(root, last)
    except (AttributeError, TypeError):
        return {}  # the annotation is anybody's to write: it need not be an object of the kind
    return difference(difference(spoken_for, changed), removed)


def _with_last_applied(obj: Obj, config: Obj) -> Obj:
    """kubectl's next client-side apply must see what has been applied on the server."""
    meta = dict(config.get("metadata") or {})
    annotations = {k: v for k, v in annotations_of(config).items() if k != LAST_APPLIED}
    if annotations or "annotations" in meta:
        meta["annotations"] = annotations
    text = orjson.dumps({**config, "metadata": meta}, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    own = {**annotations_of(obj), LAST_APPLIED: text}
    if sum(len(key.encode()) + len(value.encode()) for key, value in own.items()) > (
        ANNOTATIONS_LIMIT
    ):
        own[LAST_APPLIED] = ""
    return {**obj, "metadata": {**obj["metadata"], "annotations": own}}


def _without_entries(obj: Obj) -> Obj:
    if "managedFields" not in meta_of(obj):
        return obj
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": meta}


def _has(fields: FieldSet, path: Path) -> bool:
    node: FieldSet | None = fields
    for element in path:
        node = None if node is None else node.get(element)
    return node is not None and (not node or "." in node)
