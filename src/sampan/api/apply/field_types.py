"""Values whose fields have owners: how each type is compared, merged and taken apart.

Job: one class per way in which a value is owned: as a whole (Leaf), by its fields (Struct), by its
    keys (Map), by its items (KeyedList, ValueList). Pure.
Invariant: values that come in are not changed; what comes out may share parts with them.
Invariant: what `compare` finds and what `set_of` finds are sets in the form of field_sets.

As upstream's structured-merge-diff. `Struct.always` names the fields that a Go struct always has:
they are there even when JSON leaves them out, so they are neither added nor removed themselves.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import orjson

from sampan.api.apply.field_sets import FieldSet, is_member, member, path_text, without_itself
from sampan.api.objects import Obj, places_by_text

Sets = tuple[FieldSet, FieldSet]  # what was changed or added; what was removed


class Node(Protocol):
    def grown(self, value: Any) -> FieldSet:
        """What is owned when the whole value is new; in canonical order."""

    def compare(self, old: Any, new: Any) -> Sets:
        """Of two values that are not equal; in canonical order."""

    def set_of(self, value: Any) -> FieldSet | None:
        """What a configuration that says this value speaks for; None for nothing."""

    def merged(self, live: Any, config: Any) -> Any:
        """The live value with the configuration put over it."""

    def less(self, value: Any, fields: FieldSet) -> Any:
        """The value without these fields and items. What becomes empty by that is None, and still
        spoken for, until `whole` takes it out."""

    def named(self, fields: FieldSet) -> FieldSet:
        """The set, and every struct field on the way to its members as a member too."""

    def problems(self, value: Any, path: str) -> Iterator[str]:
        """Why the value cannot be merged."""

    def atomics(self, value: Any, path: str) -> Iterator[str]:
        """Where a configuration would replace a list or map as a whole."""


class Leaf:
    """A scalar, or something that is only ever replaced as a whole."""

    def grown(self, value: Any) -> FieldSet:
        return {}

    def compare(self, old: Any, new: Any) -> Sets:
        return {}, _NONE

    def set_of(self, value: Any) -> FieldSet | None:
        return {}

    def merged(self, live: Any, config: Any) -> Any:
        return config

    def less(self, value: Any, fields: FieldSet) -> Any:
        return value

    def named(self, fields: FieldSet) -> FieldSet:
        return fields

    def problems(self, value: Any, path: str) -> Iterator[str]:
        return iter(())

    def atomics(self, value: Any, path: str) -> Iterator[str]:
        if isinstance(value, list | dict):
            yield path


LEAF = Leaf()
MOST_REMEMBERED = 64
# Most values of a type have the same keys. What is owned of them if all are leaves, in order; and
# the fields that are none.
_Plan = tuple[FieldSet, list[tuple[str, str, Node]]]
_NONE: FieldSet = {".": {".": {}}}  # no set at all, where {} would be a member


class Struct:
    """Each field on its own."""

    def __init__(self, always: frozenset[str]) -> None:
        self.fields: dict[str, Node] = {}
        self._always = always
        self._labels: dict[str, str] = {}
        self._plans: dict[tuple[str, ...], _Plan] = {}  # by the keys that a value has

    def add(self, key: str, node: Node) -> None:
        """Fields come one by one: a struct may hold itself."""
        self.fields[key] = node
        self._labels[key] = f"f:{key}"
        self._plans.clear()

    def grown(self, value: Obj) -> FieldSet:
        if not value:
            return {}
        keys = (*value,)
        try:
            leaves, others = self._plans[keys]
        except KeyError:
            leaves, others = self._plan(keys)
        if not others:
            return leaves
        out = leaves.copy()
        for key, label, node in others:
            out[label] = node.grown(value[key])
        return out

    def _plan(self, keys: tuple[str, ...]) -> "_Plan":
        if len(self._plans) >= MOST_REMEMBERED:
            self._plans.clear()
        fields, labels = self.fields, self._labels
        known = [key for key in sorted(keys) if key in fields]
        leaves: FieldSet = {".": {}, **{labels[key]: {} for key in known}}
        others = [(key, labels[key], fields[key]) for key in known if fields[key] is not LEAF]
        self._plans[keys] = leaves, others
        return leaves, others

    def compare(self, old: Obj, new: Obj) -> Sets:
        changed: FieldSet = {}
        removed: FieldSet = {}
        fields, labels = self.fields, self._labels
        for key, value in new.items():
            before = old.get(key)
            if before is value or before == value or key not in fields:
                continue
            if fields[key] is LEAF:
                # A list that is always written, and empty, is None.
                (removed if value is None else changed)[labels[key]] = {}
            elif before is None:
                self._came_or_went(key, value, changed)
            elif value is None:
                self._came_or_went(key, before, removed)
            else:
                _put(labels[key], fields[key].compare(before, value), changed, removed)
        for key, value in old.items():
            if key not in new and key in fields:
                self._came_or_went(key, value, removed)
        return _in_order(changed), _in_order(removed)

    def _came_or_went(self, key: str, value: Any, out: FieldSet) -> None:
        node = self.fields[key]
        if node is LEAF or key not in self._always:
            out[self._labels[key]] = node.grown(value)
            return
        if isinstance(node, Struct):
            below = node.compare({}, value)[0]
        else:
            below = without_itself(node.grown(value)) or _NONE
        if below is not _NONE:
            out[self._labels[key]] = below

    def set_of(self, value: Obj) -> FieldSet | None:
        out: FieldSet = {}
        for key, inner in value.items():
            node = self.fields.get(key)
            if node is None:
                continue
            found = {} if inner is None or inner == {} else node.set_of(inner)
            if found is not None:
                out[self._labels[key]] = found
        return out or None

    def merged(self, live: Obj, config: Obj) -> Obj:
        out = dict(live)
        for key, value in config.items():
            before = live.get(key)
            node = self.fields.get(key, LEAF)
            out[key] = value if before is None else node.merged(before, value)
        return out

    def less(self, value: Obj, fields: FieldSet) -> Obj | None:
        out: Obj = {}
        for key, inner in value.items():
            going = fields.get(f"f:{key}")
            if going is not None:
                if is_member(going):
                    continue
                inner = inner and self.fields.get(key, LEAF).less(inner, going)
            out[key] = inner
        return out or None

    def named(self, fields: FieldSet) -> FieldSet:
        out: FieldSet = {}
        for label, inner in fields.items():
            node = self.fields.get(label[2:])
            out[label] = inner if node is None or not inner else member(node.named(inner))
        return out

    def problems(self, value: Obj, path: str) -> Iterator[str]:
        for key, inner in value.items():
            if inner is not None:
                yield from self.fields.get(key, LEAF).problems(inner, f"{path}.{key}")

    def atomics(self, value: Obj, path: str) -> Iterator[str]:
        for key, inner in value.items():
            if inner is not None:
                yield from self.fields.get(key, LEAF).atomics(inner, f"{path}.{key}")


class Map:
    """Each key on its own."""

    def __init__(self, element: Node) -> None:
        self._element = element
        self._grown: dict[tuple[str, ...], FieldSet] = {}  # of leaves, by their keys

    def grown(self, value: Obj) -> FieldSet:
        if not value:
            return {}
        element = self._element
        if element is LEAF:
            keys = (*value,)
            try:
                return self._grown[keys]
            except KeyError:
                return self._grown_leaves(keys)
        out: FieldSet = {".": {}}
        for key in sorted(value):
            out[f"f:{key}"] = element.grown(value[key])
        return out

    def _grown_leaves(self, keys: tuple[str, ...]) -> FieldSet:
        if len(self._grown) >= MOST_REMEMBERED:
            self._grown.clear()
        made: FieldSet = {".": {}, **{f"f:{key}": {} for key in sorted(keys)}}
        if len(keys) <= MOST_REMEMBERED:
            self._grown[keys] = made
        return made

    def compare(self, old: Obj, new: Obj) -> Sets:
        changed: FieldSet = {}
        removed: FieldSet = {}
        for key, value in new.items():
            before = old.get(key)
            if before is None:
                changed[f"f:{key}"] = self._element.grown(value)
            elif before != value:
                _put(f"f:{key}", self._element.compare(before, value), changed, removed)
        for key, value in old.items():
            if key not in new:
                removed[f"f:{key}"] = self._element.grown(value)
        return _in_order(changed), _in_order(removed)

    def set_of(self, value: Obj) -> FieldSet | None:
        element = self._element
        found = {
            f"f:{key}": {} if item is None else member(element.set_of(item) or {})
            for key, item in value.items()
        }
        return found or None

    def merged(self, live: Obj, config: Obj) -> Obj:
        out = dict(live)
        for key, value in config.items():
            before = live.get(key)
            out[key] = value if before is None else self._element.merged(before, value)
        return out

    def less(self, value: Obj, fields: FieldSet) -> Obj | None:
        out: Obj = {}
        for key, inner in value.items():
            going = fields.get(f"f:{key}")
            if going is not None:
                if is_member(going):
                    continue
                inner = self._element.less(inner, going)
            out[key] = inner
        return out or None

    def named(self, fields: FieldSet) -> FieldSet:
        return _named_below(self._element, fields)

    def problems(self, value: Obj, path: str) -> Iterator[str]:
        for key, inner in value.items():
            yield from self._element.problems(inner, f"{path}.{key}")

    def atomics(self, value: Obj, path: str) -> Iterator[str]:
        for key, inner in value.items():
            yield from self._element.atomics(inner, f"{path}.{key}")


class KeyedList:
    """Each item on its own, told apart by some of its fields; or by its value, without keys."""

    def __init__(
        self, element: Node, keys: tuple[str, ...], defaults: Obj, required: frozenset[str]
    ) -> None:
        self._element = element
        self._keys = tuple(sorted(keys))
        self._defaults = defaults  # of keys that may be left out
        self._required = required
        self._only = self._keys[0] if len(keys) == 1 else ""
        self._labels: dict[str, str] = {}  # of items that one text tells apart

    def grown(self, value: list[Any]) -> FieldSet:
        if not value:
            return {}
        found = {self._label(item): self._element.grown(item) for item in value}
        out: FieldSet = {".": {}}
        for label in sorted(found):
            out[label] = found[label]
        return out

    def compare(self, old: list[Any], new: list[Any]) -> Sets:
        if self._only:
            was, now = _by_text(old, self._only), _by_text(new, self._only)
            if was is not None and now is not None:
                return self._compare_by_text(was, now)
        changed: FieldSet = {}
        removed: FieldSet = {}
        before, after = self._index(old), self._index(new)
        for label, items in after.items():
            were = before.get(label)
            if were is None:
                changed[label] = self._element.grown(items[0])
            elif were == items:
                continue
            elif len(were) == len(items) == 1:
                _put(label, self._element.compare(were[0], items[0]), changed, removed)
            else:
                changed[label] = {}  # duplicates, which only old objects have: as a whole
        for label, items in before.items():
            if label not in after:
                removed[label] = self._element.grown(items[0])
        return _in_order(changed), _in_order(removed)

    def _compare_by_text(self, before: dict[str, Any], after: dict[str, Any]) -> Sets:
        changed: FieldSet = {}
        removed: FieldSet = {}
        for text, item in after.items():
            if text not in before:
                changed[self._text_label(text)] = self._element.grown(item)
            elif before[text] != item:
                sets = self._element.compare(before[text], item)
                _put(self._text_label(text), sets, changed, removed)
        for text, item in before.items():
            if text not in after:
                removed[self._text_label(text)] = self._element.grown(item)
        return _in_order(changed), _in_order(removed)

    def set_of(self, value: list[Any]) -> FieldSet | None:
        found = {self._label(item): member(self._element.set_of(item) or {}) for item in value}
        return found or None

    def merged(self, live: list[Any], config: list[Any]) -> list[Any]:
        """The configuration's order for its own items; what only the live list has stays where it
        is among them."""
        rights = [(self._label(item), item) for item in config]
        lefts = deque((self._label(item), item) for item in live)
        of_left, of_right = dict(reversed(lefts)), dict(rights)
        shared = deque(label for label, _ in rights if label in of_left)  # not yet placed
        out: list[Any] = []
        placed: set[str] = set()
        for label, item in rights:
            out += _live_before(label, lefts, of_right, placed, shared)
            placed.add(label)
            before = of_left.get(label)
            out.append(item if before is None else self._element.merged(before, item))
            if shared and shared[0] == label:
                shared.popleft()
        out += [item for label, item in lefts if label not in of_right]
        return out

    def less(self, value: list[Any], fields: FieldSet) -> list[Any] | None:
        out: list[Any] = []
        for item in value:
            going = fields.get(self._label(item))
            if going is not None:
                if is_member(going):
                    continue
                item = self._element.less(item, going)
            out.append(item)
        return out or None

    def named(self, fields: FieldSet) -> FieldSet:
        return _named_below(self._element, fields)

    def problems(self, value: list[Any], path: str) -> Iterator[str]:
        seen: set[str] = set()
        for index, item in enumerate(value):
            if not self._keys and isinstance(item, dict):
                yield (
                    f"{path}: element {index}: associative list without keys has an element "
                    "that's a map type"
                )
                continue
            missing = [key for key in self._required if key not in item]
            if self._keys and (missing or not any(key in item for key in self._keys)):
                yield (
                    f"{path}: element {index}: associative list with keys has an element that "
                    f'omits key field "{(missing or self._keys)[0]}" (and doesn\'t have default '
                    "value)"
                )
                continue
            label = self._label(item)
            if label in seen:
                yield f"{path}: duplicate entries for key {path_text((label,))}"
            seen.add(label)
            yield from self._element.problems(item, path + path_text((label,)))

    def atomics(self, value: list[Any], path: str) -> Iterator[str]:
        for index, item in enumerate(value):
            yield from self._element.atomics(item, f"{path}[{index}]")

    def _label(self, item: Any) -> str:
        if not self._keys:
            return "v:" + orjson.dumps(item).decode()
        if self._only:
            only = item.get(self._only)
            if type(only) is str:
                return self._text_label(only)
        keys = {}
        for key in self._keys:
            value = item.get(key)
            if value is None:
                value = self._defaults.get(key)
            if value is not None:
                keys[key] = value
        return "k:" + orjson.dumps(keys).decode()

    def _text_label(self, text: str) -> str:
        try:
            return self._labels[text]
        except KeyError:
            pass
        if len(self._labels) >= MOST_REMEMBERED:
            self._labels.clear()
        label = self._labels[text] = "k:" + orjson.dumps({self._only: text}).decode()
        return label

    def _index(self, items: list[Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for item in items:
            found.setdefault(self._label(item), []).append(item)
        return found


def _by_text(items: list[Any], key: str) -> dict[str, Any] | None:
    places = places_by_text(items, key)
    return None if places is None else dict(zip(places, items, strict=True))


def _live_before(
    label: str,
    lefts: deque[tuple[str, Any]],
    of_right: Mapping[str, Any],
    placed: set[str],
    shared: deque[str],
) -> list[Any]:
    """What of the live list comes before the configuration's next item; taken from `lefts`."""
    out = []
    while lefts:
        own, item = lefts[0]
        if own not in of_right:
            out.append(item)
        elif own == label or not shared or shared[0] == own:
            if own == label or own in placed:
                lefts.popleft()
            break
        lefts.popleft()  # it is told already, or the configuration places it later
    return out


def compare(root: Node, old: Obj, new: Obj) -> Sets:
    """(changed or added, removed) between two whole objects."""
    changed, removed = root.compare(old, new)
    return ({} if changed is _NONE else changed), ({} if removed is _NONE else removed)


def set_of(root: Node, obj: Obj) -> FieldSet:
    return root.set_of(obj) or {}


def less(root: Node, obj: Obj, fields: FieldSet) -> Obj:
    left: Obj = root.less(obj, fields) or {}
    return left


def whole(value: Any) -> Any:
    """Without what has become None."""
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [whole(item) for item in value if item is not None]
    return value


def _in_order(found: FieldSet) -> FieldSet:
    """Neither fields nor items go by numbers here: the letters of their labels are the order."""
    if len(found) < 2:
        return found or _NONE
    labels = sorted(found)
    return found if labels == [*found] else {label: found[label] for label in labels}


def _put(label: str, sets: Sets, changed: FieldSet, removed: FieldSet) -> None:
    if sets[0] is not _NONE:
        changed[label] = sets[0]
    if sets[1] is not _NONE:
        removed[label] = sets[1]


def _named_below(element: Node, fields: FieldSet) -> FieldSet:
    return {
        key: inner if key == "." or not inner else element.named(inner)
        for key, inner in fields.items()
    }
