"""Patches between objects: two-way, and the three-way patch of a client-side apply.

Job: what must be sent so that `current` gets what `modified` says, and loses what only `original`
    had. Strategic where the type is known, a JSON merge patch where it is not. Pure.
"""

from typing import Any

from sampan.api.objects import Obj
from sampan.api.schema.field_kinds import Type
from sampan.api.schema.published import Schema


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
    changes = patch.changes(current, modified, kind)
    deletions = patch.deletions(original, modified, kind)
    return _joined_strategic(changes, deletions, patch, kind)


def two_way_patch(schema: Schema, before: Obj, after: Obj) -> Obj:
    return strategic_merge_patch(schema, before, after, before)


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


class _Strategic:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def field(self, holder: Type | None, key: str) -> Type | None:
        if holder is None:
            return None
        if holder.shape == "object":
            return self._schema.fields_of(holder.name).get(key)
        return holder.element if holder.shape == "map" else None

    def changes(self, current: Obj, modified: Obj, holder: Type | None) -> Obj:
        patch: Obj = {}
        for key, value in modified.items():
            kind = self.field(holder, key)
            before = current.get(key)
            if key not in current or type(before) is not type(value):
                if before != value:
                    patch[key] = value
            elif isinstance(value, dict) and isinstance(before, dict):
                if kind is not None and "replace" in kind.strategies:
                    if value != before:
                        patch[key] = {**value, "$patch": "replace"}
                    continue
                inner = self.changes(before, value, kind)
                if inner:
                    patch[key] = inner
            elif isinstance(value, list) and isinstance(before, list):
                self._list_changes(patch, key, before, value, kind)
            elif value != before:
                patch[key] = value
        return patch

    def _list_changes(
        self, patch: Obj, key: str, before: list[Any], after: list[Any], kind: Type | None
    ) -> None:
        if kind is None or "merge" not in kind.strategies:
            if before != after:
                patch[key] = after
            return
        if not kind.merge_key:
            added = [item for item in after if item not in before]
            if added:
                patch[key] = added
                patch[f"$setElementOrder/{key}"] = after
            return
        name = kind.merge_key
        items = self._item_changes(before, after, name, kind.element)
        order = [{name: item.get(name)} for item in after]
        if items:
            patch[key] = items
        if items or order != [{name: item.get(name)} for item in before][: len(order)]:
            patch[f"$setElementOrder/{key}"] = order

    def _item_changes(
        self, before: list[Any], after: list[Any], name: str, element: Type | None
    ) -> list[Any]:
        """New items whole; of the others what differs, with the key that finds them."""
        known = {item.get(name): item for item in before if isinstance(item, dict)}
        items = []
        for item in after:
            own = known.get(item.get(name)) if isinstance(item, dict) else None
            if own is None:
                items.append(item)
                continue
            inner = self.changes(own, item, element)
            if inner:
                items.append({**inner, name: item[name]})
        return items

    def deletions(self, original: Obj, modified: Obj, holder: Type | None) -> Obj:
        patch: Obj = {}
        for key, value in original.items():
            kind = self.field(holder, key)
            after = modified.get(key)
            if after is None:
                patch[key] = None
            elif isinstance(value, dict) and isinstance(after, dict):
                inner = self.deletions(value, after, kind)
                if inner:
                    patch[key] = inner
            elif isinstance(value, list) and isinstance(after, list):
                self._list_deletions(patch, key, value, after, kind)
        return patch

    def _list_deletions(
        self, patch: Obj, key: str, before: list[Any], after: list[Any], kind: Type | None
    ) -> None:
        if kind is None or "merge" not in kind.strategies:
            return
        if not kind.merge_key:
            gone = [item for item in before if item not in after]
            if gone:
                patch[f"$deleteFromPrimitiveList/{key}"] = gone
            return
        name = kind.merge_key
        kept = {item.get(name): item for item in after if isinstance(item, dict)}
        items: list[Obj] = []
        for item in before:
            own = kept.get(item.get(name)) if isinstance(item, dict) else None
            if own is None:
                items.append({"$patch": "delete", name: item.get(name)})
                continue
            inner = self.deletions(item, own, kind.element)
            if inner:
                items.append({**inner, name: item[name]})
        if items:
            patch[key] = items
            patch[f"$setElementOrder/{key}"] = [{name: item.get(name)} for item in after]


def _joined_strategic(one: Obj, two: Obj, patch: _Strategic, holder: Type | None) -> Obj:
    joined = dict(one)
    for key, value in two.items():
        kind = patch.field(holder, key)
        if isinstance(value, dict) and isinstance(joined.get(key), dict):
            joined[key] = _joined_strategic(joined[key], value, patch, kind)
        elif isinstance(value, list) and isinstance(joined.get(key), list) and kind is not None:
            joined[key] = _joined_items(joined[key], value, patch, kind)
        else:
            joined.setdefault(key, value)
    return joined


def _joined_items(one: list[Any], two: list[Any], patch: _Strategic, kind: Type) -> list[Any]:
    if not kind.merge_key:
        return one
    name = kind.merge_key
    items = {item.get(name): item for item in one if isinstance(item, dict)}
    for item in two:
        own = items.get(item.get(name))
        items[item.get(name)] = (
            _joined_strategic(own, item, patch, kind.element) if own is not None else item
        )
    return list(items.values())
