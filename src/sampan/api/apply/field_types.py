"""Typed values of server-side apply: how two values of one type differ.

Job: one class per way in which a value is owned: as a whole (Leaf), by its fields (Struct), by its
    keys (Map), by its items (KeyedList), or as what it is found to be (Deduced). Pure.
Invariant: values that come in are not changed; what comes out may share parts with them.
Invariant: what `compare` finds is in the form and the order of field_sets.

As upstream's structured-merge-diff: null is a value, which a list or a map without items may be
too; it is not the same as nothing at all. A value of another kind than its type counts as null.
`Struct.always` names the fields that a Go struct always has: they are there even when JSON leaves
them out, so they are neither added nor removed themselves.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import orjson

from sampan.api.apply.field_sets import FieldSet, without_itself
from sampan.api.go_text import go_json
from sampan.api.objects import Obj, places_by_text
from sampan.core.bounded import FlushedMemo

Sets = tuple[FieldSet, FieldSet]  # what was changed or added; what was removed
MOST_REMEMBERED = 64
NONE: FieldSet = {".": {".": {}}}  # no set at all, where {} would be a member
_NOTHING: Obj = {}


class Node(Protocol):
    def grown(self, value: Any) -> FieldSet:
        """What is owned when the whole value is new; in canonical order."""

    def compare(self, old: Any, new: Any) -> Sets:
        """Of two values that are not equal; in canonical order."""

    def named(self, fields: FieldSet) -> FieldSet:
        """The set, and every struct field on the way to its members as a member too."""


class Leaf:
    """What is only ever replaced as a whole: a scalar, or a list or a map that is atomic. `inner`:
    what an atomic one holds, as a type of its own."""

    __slots__ = ("inner", "kind")

    def __init__(self, kind: str, inner: "Node | None" = None) -> None:
        self.kind = kind  # string, numeric, boolean, untyped; list, map
        self.inner = inner

    def grown(self, value: Any) -> FieldSet:
        return {}

    def compare(self, old: Any, new: Any) -> Sets:
        return {}, NONE

    def named(self, fields: FieldSet) -> FieldSet:
        return fields


STRING, NUMERIC, BOOLEAN = Leaf("string"), Leaf("numeric"), Leaf("boolean")
UNTYPED = Leaf("untyped")  # any scalar
# Most values of a type have the same keys. What is owned of them if all are leaves, in order; and
# the fields that are none.
_Plan = tuple[FieldSet, list[tuple[str, str, Node]]]


class Struct:
    """Each field on its own. `element`: what a field is that has no type of its own; None where
    there may be none."""

    def __init__(self, always: frozenset[str], element: Node | None = None) -> None:
        self.fields: dict[str, Node] = {}
        self.element = element
        self._always = always
        self._labels: dict[str, str] = {}
        # By the keys that a value has.
        self._plans: FlushedMemo[tuple[str, ...], _Plan] = FlushedMemo(MOST_REMEMBERED)

    def add(self, key: str, node: Node) -> None:
        """Fields come one by one: a struct may hold itself."""
        self.fields[key] = node
        self._labels[key] = f"f:{key}"
        self._plans.clear()

    def field(self, key: str) -> Node | None:
        return self.fields.get(key, self.element)

    def grown(self, value: Any) -> FieldSet:
        if not value or type(value) is not dict:
            return {}
        keys = (*value,)
        try:
            leaves, others = self._plans.known[keys]
        except KeyError:
            leaves, others = self._plan(keys)
        if not others:
            return leaves
        out = leaves.copy()
        for key, label, node in others:
            out[label] = node.grown(value[key])
        return out

    def _plan(self, keys: tuple[str, ...]) -> "_Plan":
        leaves: FieldSet = {".": {}}
        others: list[tuple[str, str, Node]] = []
        for key in sorted(keys):
            node = self.field(key)
            if node is not None:
                label = f"f:{key}"
                leaves[label] = {}
                if type(node) is not Leaf:
                    others.append((key, label, node))
        plan = leaves, others
        return self._plans.keep(keys, plan) if len(keys) <= MOST_REMEMBERED else plan

    def compare(self, old: Any, new: Any) -> Sets:
        was = old if type(old) is dict else _NOTHING
        now = new if type(new) is dict else _NOTHING
        if not was and not now:
            return {}, NONE
        changed: FieldSet = {}
        removed: FieldSet = {}
        fields, labels = self.fields, self._labels
        for key, value in now.items():
            if key in was:
                before = was[key]
                if before is value or before == value:
                    continue
                node = fields.get(key, self.element)
                if type(node) is Leaf:
                    changed[labels.get(key) or f"f:{key}"] = {}
                elif node is not None:
                    _put(f"f:{key}", node.compare(before, value), changed, removed)
            else:
                self._came_or_went(key, value, changed)
        for key, value in was.items():
            if key not in now:
                self._came_or_went(key, value, removed)
        return _in_order(changed), _in_order(removed)

    def _came_or_went(self, key: str, value: Any, out: FieldSet) -> None:
        node = self.fields.get(key, self.element)
        if node is None:
            return
        label = f"f:{key}"
        if key not in self._always or type(node) is Leaf:
            out[label] = node.grown(value)
            return
        if isinstance(node, Struct):
            below = node.compare({}, value)[0] if value else NONE
        else:
            below = without_itself(node.grown(value)) or NONE
        if below is not NONE:
            out[label] = below

    def named(self, fields: FieldSet) -> FieldSet:
        out: FieldSet = {}
        for label, inner in fields.items():
            node = self.fields.get(label[2:])
            if node is None or not inner:
                out[label] = inner
            else:
                below = node.named(inner)
                out[label] = below if "." in below else {".": {}, **below}
        return out


class Map:
    """Each key on its own."""

    def __init__(self, element: Node) -> None:
        self.element = element
        # Of leaves, by their keys.
        self._grown: FlushedMemo[tuple[str, ...], FieldSet] = FlushedMemo(MOST_REMEMBERED)

    def field(self, key: str) -> Node | None:
        return self.element

    def grown(self, value: Any) -> FieldSet:
        if not value or type(value) is not dict:
            return {}
        element = self.element
        if type(element) is Leaf:
            keys = (*value,)
            try:
                return self._grown.known[keys]
            except KeyError:
                return self._grown_leaves(keys)
        out: FieldSet = {".": {}}
        for key in sorted(value):
            out[f"f:{key}"] = element.grown(value[key])
        return out

    def _grown_leaves(self, keys: tuple[str, ...]) -> FieldSet:
        made: FieldSet = {".": {}, **{f"f:{key}": {} for key in sorted(keys)}}
        return self._grown.keep(keys, made) if len(keys) <= MOST_REMEMBERED else made

    def compare(self, old: Any, new: Any) -> Sets:
        was = old if type(old) is dict else _NOTHING
        now = new if type(new) is dict else _NOTHING
        if not was and not now:
            return {}, NONE
        changed: FieldSet = {}
        removed: FieldSet = {}
        for key, value in now.items():
            if key not in was:
                changed[f"f:{key}"] = self.element.grown(value)
            elif was[key] != value:
                _put(f"f:{key}", self.element.compare(was[key], value), changed, removed)
        for key, value in was.items():
            if key not in now:
                removed[f"f:{key}"] = self.element.grown(value)
        return _in_order(changed), _in_order(removed)

    def named(self, fields: FieldSet) -> FieldSet:
        return _named_below(self.element, fields)


class KeyedList:
    """Each item on its own, told apart by some of its fields; or by its value, without keys."""

    def __init__(
        self, element: Node, keys: Iterable[str] = (), defaults: Obj | None = None
    ) -> None:
        self.element = element
        self.given_keys = (*keys,)  # in the order of the schema
        self.defaults = defaults or {}  # of keys that may be left out
        self._keys = tuple(sorted(self.given_keys))
        self._only = self._keys[0] if len(self._keys) == 1 else ""
        # Of items that one text tells apart.
        self._labels: FlushedMemo[str, str] = FlushedMemo(MOST_REMEMBERED)

    def grown(self, value: Any) -> FieldSet:
        if not value or type(value) is not list:
            return {}
        found = self._index(value)
        out: FieldSet = {".": {}}
        for label in sorted(found):
            items = found[label]
            out[label] = self.element.grown(items[0]) if len(items) == 1 else {}
        return out

    def compare(self, old: Any, new: Any) -> Sets:
        was = old if type(old) is list else []
        now = new if type(new) is list else []
        if not was and not now:
            return {}, NONE
        if self._only:
            before, after = _by_text(was, self._only), _by_text(now, self._only)
            if before is not None and after is not None:
                return self._compare_by_text(before, after)
        return self._compare_by_label(self._index(was), self._index(now))

    def _compare_by_label(self, before: dict[str, list[Any]], after: dict[str, list[Any]]) -> Sets:
        """Items that are there twice, which only old objects have, are told as a whole."""
        changed: FieldSet = {}
        removed: FieldSet = {}
        for label, items in after.items():
            were = before.get(label)
            if were == items:
                continue
            if were is not None and len(were) == len(items) == 1:
                _put(label, self.element.compare(were[0], items[0]), changed, removed)
                continue
            changed[label] = self.element.grown(items[0]) if len(items) == 1 else {}
            if were is not None and (len(were) == 1 or len(items) == 1):
                removed[label] = self.element.grown(were[0]) if len(were) == 1 else {}
        for label, items in before.items():
            if label not in after:
                removed[label] = self.element.grown(items[0]) if len(items) == 1 else {}
        return _in_order(changed), _in_order(removed)

    def _compare_by_text(self, before: dict[str, Any], after: dict[str, Any]) -> Sets:
        changed: FieldSet = {}
        removed: FieldSet = {}
        for text, item in after.items():
            if text not in before:
                changed[self._text_label(text)] = self.element.grown(item)
            elif before[text] != item:
                sets = self.element.compare(before[text], item)
                _put(self._text_label(text), sets, changed, removed)
        for text, item in before.items():
            if text not in after:
                removed[self._text_label(text)] = self.element.grown(item)
        return _in_order(changed), _in_order(removed)

    def named(self, fields: FieldSet) -> FieldSet:
        return _named_below(self.element, fields)

    def label(self, item: Any) -> str:
        """Under which an item is owned."""
        if not self._keys:
            return "v:" + _key_text(item)
        if type(item) is not dict:
            return "v:null"  # no item of such a list: of an object that is going to be refused
        if self._only:
            only = item.get(self._only)
            if type(only) is str:
                return self._text_label(only)
        keys = []
        for key in self._keys:
            value = item[key] if key in item else self.defaults.get(key)
            if value is not None or key in item:
                keys.append(f"{_key_text(key)}:{_key_text(value)}")
        return f"k:{{{','.join(keys)}}}"

    def _text_label(self, text: str) -> str:
        try:
            return self._labels.known[text]
        except KeyError:
            pass
        return self._labels.keep(text, "k:" + orjson.dumps({self._only: text}).decode())

    def _index(self, items: list[Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for item in items:
            found.setdefault(self.label(item), []).append(item)
        return found


class Deduced:
    """What no schema speaks of: a map by its keys, everything else as a whole."""

    def __init__(self) -> None:
        self._map = Map(self)
        self._list = Leaf("list", self)

    def as_found(self, value: Any) -> Node:
        """The type of this value; of null, which says nothing, a map's."""
        if isinstance(value, list):
            return self._list
        return self._map if value is None or isinstance(value, dict) else UNTYPED

    def grown(self, value: Any) -> FieldSet:
        return self._map.grown(value)

    def compare(self, old: Any, new: Any) -> Sets:
        one, two = self.as_found(old), self.as_found(new)
        if one is two:
            return one.compare(old, new)
        # It is another value; and what was below a map goes with it, or comes with it.
        changed, removed = self._map.compare(old, new)
        if two is self._map and changed and changed is not NONE:
            return {".": {}, **changed}, removed
        return {}, removed

    def named(self, fields: FieldSet) -> FieldSet:
        return fields


DEDUCED = Deduced()


def compare(root: Node, old: Obj, new: Obj) -> Sets:
    """(changed or added, removed) between two whole objects."""
    changed, removed = root.compare(old, new)
    return ({} if changed is NONE else changed), ({} if removed is NONE else removed)


def _key_text(value: Any) -> str:
    """Of what tells an item apart: a scalar, or whatever somebody has put in its place."""
    if isinstance(value, float | dict | list):
        return go_json(value)
    return orjson.dumps(value).decode()


def _by_text(items: list[Any], key: str) -> dict[str, Any] | None:
    places = places_by_text(items, key)
    return None if places is None else dict(zip(places, items, strict=True))


def _in_order(found: FieldSet) -> FieldSet:
    """Neither fields nor items go by numbers here: the letters of their labels are the order."""
    if len(found) < 2:
        return found or NONE
    labels = sorted(found)
    return found if labels == [*found] else {label: found[label] for label in labels}


def _put(label: str, sets: Sets, changed: FieldSet, removed: FieldSet) -> None:
    if sets[0] is not NONE:
        changed[label] = sets[0]
    if sets[1] is not NONE:
        removed[label] = sets[1]


def _named_below(element: Node, fields: FieldSet) -> FieldSet:
    return {
        key: inner if key == "." or not inner else element.named(inner)
        for key, inner in fields.items()
    }
