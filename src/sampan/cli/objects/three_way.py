"""Patches between objects: two-way, and the three-way patch of a client-side apply.

Job: what must be sent so that `current` gets what `modified` says, and loses what only `original`
    had. Strategic where the type is known, a JSON merge patch where it is not. Pure.
"""

from typing import Any

from sampan.api.objects import Obj
from sampan.api.schema.field_kinds import Type
from sampan.api.schema.published import Schema
from sampan.core.fast_dataclass import dataclass


def merge_patch(original: Obj, modified: Obj, current: Obj) -> Obj:
    """A JSON merge patch: lists are replaced whole."""
    changes = _merge_changes(current, modified)
    deletions = _merge_deletions(original, modified)
    return _join(changes, deletions)


def strategic_merge_patch(schema: Schema, original: Obj, modified: Obj, current: Obj) -> Obj:
    kind = schema.type_of(str(modified.get("apiVersion")), str(modified.get("kind")))
    if kind is None:
        return merge_patch(original, modified, current)
    patch = _Strategic(schema)
    changes = patch.difference(current, modified, kind, _Options(deletions=False))
    deletions = patch.difference(original, modified, kind, _Options(changes=False))
    return _joined_strategic(deletions, changes, patch, kind)


def two_way_patch(schema: Schema, before: Obj, after: Obj) -> Obj:
    kind = schema.type_of(str(after.get("apiVersion")), str(after.get("kind")))
    if kind is None:
        return merge_patch(before, after, before)
    return _Strategic(schema).difference(before, after, kind, _Options())


def has_conflicts(one: Any, two: Any) -> bool:
    """Whether two patches want different things of the same field; lists are taken whole."""
    if isinstance(one, dict) and isinstance(two, dict):
        return any(has_conflicts(value, two[key]) for key, value in one.items() if key in two)
    return bool(one != two)


def _merge_changes(current: Obj, modified: Obj) -> Obj:
    patch: Obj = {}
    for key, value in modified.items():
        if key not in current:
            patch[key] = value
        elif isinstance(value, dict) and isinstance(current[key], dict):
            inner = _merge_changes(current[key], value)
            if inner:
                patch[key] = inner
        elif value != current[key]:
            patch[key] = value
    return patch


def _merge_deletions(original: Obj, modified: Obj) -> Obj:
    patch: Obj = {}
    for key, value in original.items():
        if key not in modified or modified[key] is None:
            patch[key] = None
        elif isinstance(value, dict) and isinstance(modified[key], dict):
            inner = _merge_deletions(value, modified[key])
            if inner:
                patch[key] = inner
    return patch


def _join(one: Obj, two: Obj) -> Obj:
    joined = dict(one)
    for key, value in two.items():
        if isinstance(value, dict) and isinstance(joined.get(key), dict):
            joined[key] = _join(joined[key], value)
        else:
            joined.setdefault(key, value)
    return joined


_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


@dataclass(frozen=True, slots=True)
class _Options:
    """Which of the differences are wanted."""

    changes: bool = True  # and additions
    deletions: bool = True


class _Strategic:
    """As the original's strategicpatch computes them, directive for directive."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def field(self, holder: Type | None, key: str) -> Type | None:
        if holder is None:
            return None
        if holder.shape == "object":
            return self._schema.fields_of(holder.name).get(key)
        return holder.element if holder.shape == "map" else None

    def difference(
        self, before: Obj, after: Obj, holder: Type | None, options: _Options, retain: bool = False
    ) -> Obj:
        """`retain`: of a union of which one field may be set, the patch names those that stay."""
        patch: Obj = {}
        for key, value in after.items():
            old = before.get(key)
            if key not in before or type(old) is not type(value):
                patch |= {key: value} if options.changes else {}
            else:
                self._value(patch, key, (old, value), self.field(holder, key), options)
        gone = [key for key in before if key not in after]
        if options.deletions:
            patch |= dict.fromkeys(gone)
        kept = sorted(key for key, value in after.items() if value is not None)
        if retain and kept and (patch or gone):
            patch[_RETAIN] = kept
        return patch

    def _value(
        self, patch: Obj, key: str, pair: tuple[Any, Any], kind: Type | None, options: _Options
    ) -> None:
        before, after = pair
        if isinstance(after, dict):
            self._map(patch, key, (before, after), kind, options)
        elif isinstance(after, list):
            self._list(patch, key, (before, after), kind, options)
        elif after != before and options.changes:
            patch[key] = after

    def _map(
        self, patch: Obj, key: str, pair: tuple[Obj, Obj], kind: Type | None, options: _Options
    ) -> None:
        strategies = kind.strategies if kind is not None else ()
        if "replace" in strategies:
            if options.changes:
                patch[key] = pair[1]
            return
        inner = self.difference(*pair, kind, options, "retainKeys" in strategies)
        if inner:
            patch[key] = inner

    def _list(
        self,
        patch: Obj,
        key: str,
        pair: tuple[list[Any], list[Any]],
        kind: Type | None,
        options: _Options,
    ) -> None:
        before, after = pair
        is_merged = kind is not None and "merge" in kind.strategies
        if not is_merged or not before:
            if options.changes and before != after:
                patch[key] = after
        elif kind is not None and kind.merge_key:
            self._items(patch, key, pair, kind, options)
        else:
            _scalars(patch, key, pair, options)

    def _items(
        self,
        patch: Obj,
        key: str,
        pair: tuple[list[Any], list[Any]],
        kind: Type,
        options: _Options,
    ) -> None:
        """New items whole; of the others what differs, with the key that finds them."""
        before, after, name = *pair, str(kind.merge_key)
        known = {item.get(name): item for item in before}
        kept = {item.get(name) for item in after}
        items: list[Obj] = []
        for item in after:
            own = known.get(item.get(name))
            if own is None:
                items += [item] if options.changes else []
                continue
            retain = "retainKeys" in kind.strategies
            inner = self.difference(own, item, kind.element, options, retain)
            if inner:
                items.append({**inner, name: item[name]})
        if options.deletions:
            items += [
                {_DIRECTIVE: "delete", name: item.get(name)}
                for item in before
                if item.get(name) not in kept
            ]
        order = [{name: item.get(name)} for item in after]
        is_moved = order != [{name: item.get(name)} for item in before]
        if items:
            patch[key] = items
        if items or (options.changes and is_moved):
            patch[_ORDER + key] = order


def _scalars(patch: Obj, key: str, pair: tuple[list[Any], list[Any]], options: _Options) -> None:
    before, after = pair
    added = [item for item in after if item not in before] if options.changes else []
    gone = [item for item in before if item not in after] if options.deletions else []
    if added:
        patch[key] = added
    if gone:
        patch[_DELETE + key] = gone
    if gone or (options.changes and before != after):
        patch[_ORDER + key] = after


def _joined_strategic(one: Obj, two: Obj, patch: _Strategic, holder: Type | None) -> Obj:
    """What is to go, and over it what changes."""
    joined = dict(one)
    for key, value in two.items():
        kind = patch.field(holder, key)
        if isinstance(value, dict) and isinstance(joined.get(key), dict):
            joined[key] = _joined_strategic(joined[key], value, patch, kind)
        elif isinstance(value, list) and isinstance(joined.get(key), list) and kind is not None:
            joined[key] = _joined_items(joined[key], value, patch, kind)
        else:
            joined[key] = value
    return joined


def _joined_items(one: list[Any], two: list[Any], patch: _Strategic, kind: Type) -> list[Any]:
    if not kind.merge_key:
        return two
    name = kind.merge_key
    items = {item.get(name): item for item in one if isinstance(item, dict)}
    for item in two:
        own = items.get(item.get(name))
        items[item.get(name)] = (
            _joined_strategic(own, item, patch, kind.element) if own is not None else item
        )
    return list(items.values())
