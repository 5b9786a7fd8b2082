"""Go's text/template, its functions, and the two that kubectl adds.

Job: what each takes and does; failures in Go's words. Pure.
Invariant: `and` and `or` are not here: they do not look at every argument.
"""

from collections.abc import Callable
from typing import Any

from sampan.api import go_base64
from sampan.api.go_template.formatting import sprint, sprintf, sprintln
from sampan.api.go_template.values import (
    NOTHING,
    Boxed,
    Byte,
    is_true,
    kind_of,
    text_of,
    type_name,
    unboxed,
)
from sampan.core.fast_dataclass import dataclass

ANY, VALUE, STRING = "interface {}", "reflect.Value", "string"


class CallError(Exception):
    """What a function says of its arguments."""


@dataclass(frozen=True, slots=True)
class Function:
    fixed: tuple[str, ...]  # the types of the arguments
    variadic: str  # of further ones; empty: there are none
    call: Callable[..., Any]


def _index(item: Any, *indexes: Any) -> Any:
    item = unboxed(item)
    if item is NOTHING:
        raise CallError("index of untyped nil")
    for index in map(unboxed, indexes):
        if isinstance(item, Boxed):
            if item.value is None:
                raise CallError("index of nil pointer")
            item = item.value
        if isinstance(item, list):
            place = _place(index, len(item))
            item = Boxed(_at(item, place))
        elif isinstance(item, str):
            data = item.encode(errors="surrogateescape")
            item = Byte(_at(data, _place(index, len(data))))
        elif isinstance(item, dict):
            item = Boxed(item.get(_key(index)))
        else:
            raise CallError(f"can't index item of type {type_name(item)}")
    return item


def _at(items: Any, place: int) -> Any:
    if place >= len(items):
        what = "slice" if isinstance(items, list) else "string"
        raise CallError(f"reflect: {what} index out of range")
    return items[place]


def _place(index: Any, most: int) -> int:
    if index is NOTHING:
        raise CallError("cannot index slice/array with nil")
    if isinstance(index, bool) or not isinstance(index, int):
        raise CallError(f"cannot index slice/array with type {type_name(index)}")
    if not 0 <= index <= most:
        raise CallError(f"index out of range: {index}")
    return int(index)


def _key(index: Any) -> str:
    if index is NOTHING:
        raise CallError("value is nil; should be of type string")
    if not isinstance(index, str):
        raise CallError(f"value has type {type_name(index)}; should be string")
    return index


def _slice(item: Any, *indexes: Any) -> Any:
    item = unboxed(item)
    if item is NOTHING:
        raise CallError("slice of untyped nil")
    if len(indexes) > 3:
        raise CallError(f"too many slice indexes: {len(indexes)}")
    if isinstance(item, str):
        if len(indexes) == 3:
            raise CallError("cannot 3-index slice a string")
        item = item.encode(errors="surrogateescape")
    elif not isinstance(item, list):
        raise CallError(f"can't slice item of type {type_name(item)}")
    # How much room a slice has beyond its length Go's decoder decides; here it has none.
    places = [_place(index.value if isinstance(index, Boxed) and index.value is not None
                     else index, len(item)) for index in indexes]  # fmt: skip
    first, last = [*places, *(0, len(item))[len(places) :]][:2]
    if first > last:
        raise CallError(f"invalid slice index: {first} > {last}")
    if len(places) == 3 and last > places[2]:
        raise CallError(f"invalid slice index: {last} > {places[2]}")
    part = item[first:last]
    return part.decode(errors="surrogateescape") if isinstance(part, bytes) else part


def _len(item: Any) -> int:
    if isinstance(item, Boxed) and item.value is None:
        raise CallError("len of nil pointer")
    item = unboxed(item)
    if isinstance(item, str):
        return len(item.encode(errors="surrogateescape"))
    if isinstance(item, list | dict):
        return len(item)
    if item is NOTHING:
        raise CallError("reflect: call of reflect.Value.Type on zero Value")
    raise CallError(f"len of type {type_name(item)}")


def _eq(first: Any, *others: Any) -> bool:
    first = unboxed(first)
    if not others:
        raise CallError("missing argument for comparison")
    return any(_is_equal(first, unboxed(other)) for other in others)


def _is_equal(left: Any, right: Any) -> bool:
    kinds = kind_of(left), kind_of(right)
    if kinds[0] != kinds[1]:
        if set(kinds) == {"int", "uint"}:
            return bool(left == right)
        if left is not NOTHING and right is not NOTHING:
            raise CallError(
                f"incompatible types for comparison: {type_name(left)} and {type_name(right)}"
            )
        return False
    if kinds[0]:
        return bool(left == right)
    return _are_both_nothing(left, right)


def _are_both_nothing(left: Any, right: Any) -> bool:
    """Maps and slices cannot be compared but with nil."""
    if left is NOTHING or right is NOTHING:
        return left is right
    if type(left) is not type(right):
        raise CallError(
            f"non-comparable types {sprintf('%s', [left])}: {type_name(left)}, "
            f"{type_name(right)}: {text_of(right)}"
        )
    raise CallError(f"non-comparable type {sprintf('%s', [right])}: {type_name(right)}")


def _lt(left: Any, right: Any) -> bool:
    left, right = unboxed(left), unboxed(right)
    kinds = kind_of(left), kind_of(right)
    if not all(kinds):
        raise CallError("invalid type for comparison")
    if kinds[0] != kinds[1]:
        if set(kinds) != {"int", "uint"}:
            raise CallError(
                f"incompatible types for comparison: {type_name(left)} and {type_name(right)}"
            )
    elif kinds[0] in ("bool", "complex"):
        raise CallError("invalid type for comparison")
    return bool(left < right)


def _le(left: Any, right: Any) -> bool:
    return _lt(left, right) or _eq(left, right)


def _call(function: Any, *arguments: Any) -> Any:
    function = unboxed(function)
    if function is NOTHING:
        raise CallError("call of nil")
    raise CallError(f"non-function {{name}} of type {type_name(function)}")


def _exists(item: Any, *indexes: Any) -> bool:
    value = unboxed(item)
    if not indexes:
        return True  # nothing is looked for
    for index in indexes:
        index = unboxed(index)
        if isinstance(value, list | str):
            data: Any = value.encode() if isinstance(value, str) else value
            is_place = isinstance(index, int) and not isinstance(index, bool)
            if not is_place or not 0 <= index < len(data):
                return False
            value = data[index]
        elif isinstance(value, dict):
            if index is not NOTHING and not isinstance(index, str):
                return False
            value = value.get("" if index is NOTHING else index)
        else:
            return False
    return value is not None and value is not NOTHING


def _base64decode(text: str) -> str:
    try:
        return go_base64.decoded(text).decode(errors="surrogateescape")
    except ValueError as error:
        raise CallError(f"base64 decode failed: {error}") from error


def _words(arguments: tuple[Any, ...]) -> str:
    """Of one string it is that string, else as print writes them."""
    if len(arguments) == 1 and isinstance(unboxed(arguments[0]), str):
        return str(unboxed(arguments[0]))
    # What is printed by itself has no value; among others it is nil.
    return sprint(["<no value>" if unboxed(one) is NOTHING else one for one in arguments])


_HTML = {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
_JS = {
    "\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026",
    "=": "\\u003D",
}  # fmt: skip


def _html(*arguments: Any) -> str:
    return "".join(_HTML.get(letter, letter) for letter in _words(arguments))


def _js(*arguments: Any) -> str:
    out = []
    for letter in _words(arguments):
        if letter in _JS:
            out.append(_JS[letter])
        elif letter < " ":
            out.append(f"\\u{ord(letter):04X}")
        elif ord(letter) < 0x80 or letter.isprintable():
            out.append(letter)
        else:
            out.append(f"\\u{ord(letter):04X}")
    return "".join(out)


def _urlquery(*arguments: Any) -> str:
    from urllib.parse import quote_plus

    return quote_plus(_words(arguments), safe="")


FUNCTIONS = {
    "base64decode": Function((STRING,), "", _base64decode),
    "call": Function((VALUE,), VALUE, _call),
    "eq": Function((VALUE,), VALUE, _eq),
    "exists": Function((ANY,), ANY, _exists),
    "ge": Function((VALUE, VALUE), "", lambda left, right: not _lt(left, right)),
    "gt": Function((VALUE, VALUE), "", lambda left, right: not _le(left, right)),
    "html": Function((), ANY, _html),
    "index": Function((VALUE,), VALUE, _index),
    "js": Function((), ANY, _js),
    "le": Function((VALUE, VALUE), "", _le),
    "len": Function((VALUE,), "", _len),
    "lt": Function((VALUE, VALUE), "", _lt),
    "ne": Function((VALUE, VALUE), "", lambda left, right: not _eq(left, right)),
    "not": Function((VALUE,), "", lambda value: not is_true(value)),
    "print": Function((), ANY, lambda *values: sprint(list(values))),
    "printf": Function((STRING,), ANY, lambda form, *values: sprintf(form, list(values))),
    "println": Function((), ANY, lambda *values: sprintln(list(values))),
    "slice": Function((VALUE,), VALUE, _slice),
    "urlquery": Function((), ANY, _urlquery),
}
NAMES = frozenset((*FUNCTIONS, "and", "or"))
