"""Strategic merge patch: a merge patch that knows which lists are maps in disguise.

Job: apply a patch with its directives, led by the schema's merge keys and strategies. Pure.
Invariant: the time it takes grows with the lists, not with their square.
Invariant: no directive ($patch, $retainKeys, $setElementOrder/…, $deleteFromPrimitiveList/…) and no
    null of the patch is left in the result.
As apimachinery's strategicpatch: items that the patch brings stand before the server's own, unless
an order is given.
"""

from collections.abc import Hashable
from typing import Any

import orjson

from sampan.api.decode_scalars import json_word
from sampan.api.errors import BadRequest, Failure, Invalid
from sampan.api.go_text import go_type_name, go_value
from sampan.api.objects import Obj, copy_of, places_by_text
from sampan.api.patch.json_patch import REFUSED
from sampan.api.schema.field_kinds import ANY, Type
from sampan.api.schema.published import Schema

_MARKER = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder"
_DELETE = "$deleteFromPrimitiveList"
_DIRECTIVE = object()  # in the place of a map that only says what to do


def strategic_patch(schema: Schema, api_version: str, kind: str, current: Obj, patch: Any) -> Obj:
    """The patched object, which may share parts with both. Raises BadRequest, Failure, Invalid: as
    upstream, most that is wrong with a directive is an error of the server."""
    if patch is None:
        return copy_of(current)  # type: ignore[no-any-return]  # an object
    if not isinstance(patch, dict):
        word = json_word(patch)
        raise BadRequest(
            f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
        )
    holder = schema.type_of(api_version, kind) or ANY
    if _is_plain(patch):
        return _plain_maps(schema, current, patch, holder)
    return _Merge(schema).maps(copy_of(current), copy_of(patch), holder)


def _is_plain(patch: Obj) -> bool:
    """It has no directives and no nulls, so what meets nothing to merge with is taken whole. By a
    cheap look at its text: what merely looks like a directive makes it no plain one."""
    try:
        text = orjson.dumps(patch)
    except (TypeError, ValueError):
        return False
    return b'"$' not in text and b"null" not in text


def _plain_maps(schema: Schema, original: Obj, patch: Obj, kind: Type) -> Obj:
    """Of a plain patch, which nobody needs to copy: nothing is changed in place."""
    out = original.copy()
    for key, value in patch.items():
        shape = type(value)
        if (shape is dict or shape is list) and key in out and type(out[key]) is shape:
            field = schema.field(kind, key) or ANY
            if shape is list:
                value = _plain_list(schema, out[key], value, field)
            elif "replace" not in field.strategies:
                value = _plain_maps(schema, out[key], value, field)
        out[key] = value
    return out


def _plain_list(schema: Schema, original: list[Any], patch: list[Any], kind: Type) -> list[Any]:
    if "merge" not in kind.strategies:
        return patch
    key = kind.merge_key
    before = places_by_text(original, key) if key else None
    ours = places_by_text(patch, key) if key else None
    if before is None or ours is None:
        return _Merge(schema).lists(copy_of(original), copy_of(patch), kind)
    others = [place for text, place in before.items() if text not in ours]
    out: list[Any] = []
    at = 0  # so many of the others are placed
    for text, index in ours.items():
        item = patch[index]
        if text in before:
            place = before[text]
            while at < len(others) and others[at] < place:
                out.append(original[others[at]])
                at += 1
            item = _plain_maps(schema, original[place], item, kind.element or ANY)
        out.append(item)
    return out + [original[place] for place in others[at:]]


class _Merge:
    """One merge; may change what it is given, because the caller handed copies."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def maps(self, original: Obj, patch: Obj, kind: Type) -> Obj:
        if _MARKER in patch:
            return _direct(patch)
        _retain_keys(original, patch)
        self._in_given_order(original, patch, kind)
        self._delete_from_primitive_lists(original, patch)
        for key, value in patch.items():
            if value is None:
                original.pop(key, None)
            elif key not in original or type(original[key]) is not type(value):
                cleaned = _without_directives(_without_nulls(value))
                if cleaned is _DIRECTIVE:
                    original.pop(key, None)
                else:
                    original[key] = cleaned
            else:
                original[key] = self._value(original[key], value, self._field(kind, key))
        return original

    def _field(self, holder: Type, key: str) -> Type:
        return self._schema.field(holder, key) or ANY

    def _value(self, original: Any, patch: Any, kind: Type) -> Any:
        if isinstance(patch, dict):
            if "replace" in kind.strategies:
                return patch
            return self.maps(original, patch, kind)
        if isinstance(patch, list):
            return self.lists(original, patch, kind)
        return patch

    def lists(self, original: list[Any], patch: list[Any], kind: Type) -> list[Any]:
        if "merge" not in kind.strategies:
            return patch
        if not original and not patch:
            return original
        if not _holds_maps(original, patch):
            both = list(dict.fromkeys([*original, *patch]))
            return _order(both, patch, original, "")
        key = kind.merge_key
        if not key:
            raise Failure(f"cannot merge lists without merge key for {kind.name or 'list'}")
        kept, items, replaced = _special_items(original, patch, key)
        if replaced:
            return items
        merged = self._items(list(kept), items, key, kind.element or ANY)
        return _order(merged, items, kept, key)

    def _items(self, kept: list[Obj], items: list[Obj], key: str, element: Type) -> list[Obj]:
        places = _places([_identity(entry, key) for entry in kept])
        for item in items:
            at = places.setdefault(_hashable(_merge_value(item, key)), len(kept))
            if at == len(kept):
                kept.append(item)
            else:
                kept[at] = self.maps(kept[at], item, element)
        return kept

    def _in_given_order(self, original: Obj, patch: Obj, holder: Type) -> None:
        """$setElementOrder/<list>: the list is merged here, then put into the order given."""
        for directive in [key for key in patch if key.startswith(_ORDER)]:
            order = patch.pop(directive)
            field = _target(directive, _ORDER, "setElementOrder list")
            items = patch.pop(field, None)
            before = original.get(field)
            for value in (order, before or [], items or []):
                if not isinstance(value, list):
                    raise Failure(
                        f"expected a []interface {{}}, but received a {go_type_name(value)}"
                    )
            kind = self._field(holder, field)
            _check_order(items or [], order, kind.merge_key)
            if before is None and items is None:
                continue
            if items is None:
                merged = before
            elif before is None:
                merged = _without_directives(items)
            else:
                merged = self.lists(copy_of(before), items, kind)
            original[field] = _order(merged or [], order, before or [], kind.merge_key)

    def _delete_from_primitive_lists(self, original: Obj, patch: Obj) -> None:
        for directive in [key for key in patch if key.startswith(_DELETE)]:
            values = patch.pop(directive)
            field = _target(directive, _DELETE, "primitive list")
            if isinstance(values, list) and isinstance(original.get(field), list):
                gone = {_hashable(value) for value in values}
                original[field] = [item for item in original[field] if _hashable(item) not in gone]


def _direct(patch: Obj) -> Obj:
    directive = patch[_MARKER]
    if directive == "replace":
        del patch[_MARKER]
        return patch
    if directive == "delete":
        return {}
    raise _unknown_directive(patch)


def _unknown_directive(patch: Obj) -> Failure:
    return Failure(f"unknown patch type: {go_value(patch[_MARKER])} in map: {go_value(patch)}")


def _retain_keys(original: Obj, patch: Obj) -> None:
    if _RETAIN not in patch:
        return
    keys = patch.pop(_RETAIN)
    if not isinstance(keys, list):
        raise BadRequest("invalid patch format of retainKeys")
    retained = {_hashable(key) for key in keys}
    for key, value in patch.items():
        if value is not None and not key.startswith((_DELETE, _ORDER)) and key not in retained:
            raise BadRequest("invalid patch format of retainKeys")
    for key in [key for key in original if key not in retained]:
        del original[key]


def _target(directive: str, prefix: str, what: str) -> str:
    """`containers`, from `$setElementOrder/containers`."""
    head, _, field = directive.partition("/")
    if head != prefix or not field:
        raise BadRequest(f"invalid patch format of {what}")
    return field


def _holds_maps(original: list[Any], patch: list[Any]) -> bool:
    kinds = {type(item) for item in (*original, *patch)}
    if len(kinds) > 1:
        shown = go_value([original, patch])
        raise Failure(f"list element types are not identical: {shown}")
    if list in kinds:
        raise Invalid(REFUSED, details={})  # lists of lists
    return dict in kinds


def _special_items(
    original: list[Obj], patch: list[Obj], key: str
) -> tuple[list[Obj], list[Obj], bool]:
    """(what is left of the original, the patch's plain items, whether they replace everything)."""
    items: list[Obj] = []
    gone: set[Hashable] = set()
    replaced = False
    for item in patch:
        match item.get(_MARKER):
            case None:
                items.append(item)
            case "delete":
                gone.add(_hashable(_merge_value(item, key)))
            case "replace":
                replaced = True
            case "merge":
                raise Failure("merging lists cannot yet be specified in the patch")
            case _:
                raise _unknown_directive(item)
    if gone:
        original = [entry for entry in original if _hashable(entry.get(key)) not in gone]
    return original, items, replaced


def _merge_value(item: Any, key: str) -> Any:
    if not isinstance(item, dict) or key not in item:
        raise Failure(f"map: {go_value(item)} does not contain declared merge key: {key}")
    return item[key]


def _identity(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def _order(merged: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """The items that `order` names stand in that order; the others keep the place that they had in
    `before` relative to them, where both were there, else they follow."""
    wanted = _places([_identity(item, key) for item in order])
    server = _places([_identity(item, key) for item in before])
    named: list[tuple[int, int | None, Any]] = []  # place in the order, place on the server, item
    others: list[tuple[int | None, Any]] = []
    for item in merged:
        identity = _hashable(_identity(item, key))
        if identity in wanted:
            named.append((wanted[identity], server.get(identity), item))
        else:
            others.append((server.get(identity), item))
    named.sort(key=lambda entry: entry[0])
    out: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(named):
        own, given = others[left][0], named[right][1]
        if own is not None and given is not None and own < given:
            out.append(others[left][1])
            left += 1
        else:
            out.append(named[right][2])
            right += 1
    return [*out, *(item for _, _, item in named[right:]), *(item for _, item in others[left:])]


def _places(identities: list[Any]) -> dict[Hashable, int]:
    """Where each is first."""
    places: dict[Hashable, int] = {}
    for index, identity in enumerate(identities):
        places.setdefault(_hashable(identity), index)
    return places


def _hashable(value: Any) -> Hashable:
    """Equal values have equal ones; a merge key may hold anything until it is validated."""
    if isinstance(value, dict | list):
        return ("json", go_value(value))
    return value  # type: ignore[no-any-return]  # JSON: a text, a number, a truth value or nothing


def _check_order(items: list[Any], order: list[Any], key: str) -> None:
    """The patch's own items must all be in the order list, in the same sequence."""
    plain = [item for item in items if not (isinstance(item, dict) and _MARKER in item)]
    named = [_merge_value(item, key) if key else item for item in plain]
    wanted = [_identity(item, key) for item in order]
    rest = iter(wanted)
    if not all(any(entry == other for other in rest) for entry in named):
        raise Failure(
            f"The order in patch list:\n{go_value(items)}\n doesn't match {_ORDER} list:\n"
            f"{go_value(order)}\n"
        )


def _without_nulls(value: Any) -> Any:
    """Of maps; in place. A null in a list stays."""
    if type(value) is dict:
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            _without_nulls(item)
    elif type(value) is list:
        for item in value:
            _without_nulls(item)
    return value


def _without_directives(value: Any) -> Any:
    """A patch value that meets nothing to merge with: a map with a directive is none."""
    if type(value) is dict:
        if _MARKER in value:
            return _DIRECTIVE
        cleaned = {key: _without_directives(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item is not _DIRECTIVE}
    if type(value) is not list:
        return value
    return [item for item in map(_without_directives, value) if item is not _DIRECTIVE]


def printed_patch(current: Any, patch: Any) -> Any:
    """The patch as it is once it was merged, for messages: nulls that met nothing are gone."""
    if not isinstance(patch, dict) or not isinstance(current, dict):
        return _without_nulls(copy_of(patch))
    return {key: item if item is None else printed_patch(current.get(key), item)
            for key, item in patch.items() if key[:1] != "$"}  # fmt: skip
