"""Sets of fields, in the form that managedFields has them in (fieldsV1).

Job: union, difference and intersection of sets; their paths as text. Pure.

A set is a dict. Its keys are path elements: `f:name` (a field), `k:{"name":"x"}` (a list's item, by
its keys), `v:"x"` (a list's item, by its value), `i:3` (by its place); the values are what the set
has below. {} is a member with nothing below it, "." marks a member with something below it, and
without "." a node only leads to members. The outermost dict is no member itself: {} is nothing.

Invariant: a set is never changed; an operation gives a new one and shares what it can.
"""

from collections.abc import Iterator
from typing import Any

import orjson

FieldSet = dict[str, Any]
Path = tuple[str, ...]

# Path elements, "*" for any, down to None: all that lies there.
Patterns = dict[str, Any]

NOTHING: FieldSet = {}
_NO_PATTERN: Patterns = {}
MAX_DEPTH = 100  # no type of the API goes that deep
_ORDER = "fkvi"  # of path elements among each other


def union(one: FieldSet, two: FieldSet) -> FieldSet:
    if not one or not two or one is two:
        return one or two
    return _union(one, two)


def difference(one: FieldSet, two: FieldSet) -> FieldSet:
    """The members of `one` that are not members of `two`."""
    if not one or not two:
        return one
    return _less_children(one, two)


def includes(one: FieldSet, two: FieldSet) -> bool:
    """Is every member of `two` one of `one`?"""
    for key, inner in two.items():
        if key not in one:
            return False
        mine = one[key]
        if inner:
            if not mine or not includes(mine, inner):
                return False
        elif mine and "." not in mine:
            return False
    return True


def recursive_difference(one: FieldSet, two: FieldSet) -> FieldSet:
    """The members of `one` that neither are members of `two` nor lie below one."""
    left: FieldSet = {}
    for key, inner in one.items():
        other = two.get(key)
        if other is None:
            left[key] = inner
        elif not is_member(other):
            rest = recursive_difference(inner, other)
            if rest or not inner:
                left[key] = _tidy(rest)
    return left


def within(fields: FieldSet, patterns: Patterns) -> FieldSet:
    """The members that a pattern leads to or lies above: the item of a list with what is asked for
    of it, but not its other fields."""
    left: FieldSet = {}
    for key, inner in fields.items():
        pattern = patterns.get(key, patterns.get("*", _NO_PATTERN))
        if pattern is None:
            left[key] = inner
        elif pattern is not _NO_PATTERN and key != ".":
            below = within(without_itself(inner), pattern)
            if is_member(inner):
                left[key] = member(below)
            elif below:
                left[key] = below
    return left


def intersection(one: FieldSet, two: FieldSet) -> FieldSet:
    if not one or not two:
        return NOTHING
    shared: FieldSet = {}
    for key, inner in one.items():
        other = two.get(key)
        if other is not None:
            both = _intersection(inner, other)
            if both is not None:
                shared[key] = both
    return shared


def in_canonical_order(fields: FieldSet) -> FieldSet:
    """As upstream writes a set: itself first, then names, keys, values and numbers, each sorted.
    The same set is then the same text, whoever wrote it and in what order."""
    names = sorted(fields)
    if names and names[-1] >= "i:" and any(name.startswith("i:") for name in names):
        names.sort(key=_rank)  # only numbers are not where their letter puts them
    out: FieldSet = {}
    for name in names:
        below = fields[name]
        out[name] = in_canonical_order(below) if below else below
    return out


def _rank(name: str) -> tuple[int, int, str]:
    kind = _ORDER.find(name[0])  # of `.` there is none: it comes first
    return kind, int(name[2:]) if name.startswith("i:") else 0, name


def is_member(node: FieldSet) -> bool:
    return not node or "." in node


def member(below: FieldSet) -> FieldSet:
    """A node that is a member, with what is below it."""
    return {".": {}, **below} if below and "." not in below else below


def without_itself(node: FieldSet) -> FieldSet:
    """What is below a node, as a set of its own."""
    if "." not in node:
        return node
    return {key: inner for key, inner in node.items() if key != "."}


def paths(fields: FieldSet, before: Path = ()) -> Iterator[Path]:
    """Every member, in upstream's order."""
    for key in sorted(fields, key=lambda field: (_ORDER.find(field[0]), field)):
        if key == ".":
            continue
        path = (*before, key)
        inner = fields[key]
        if is_member(inner):
            yield path
        yield from paths(inner, path)


def path_text(path: Path) -> str:
    """`.spec.containers[name="main"].image`."""
    return "".join(_element_text(item) for item in path)


def canonical_set(given: object, depth: int = 0) -> FieldSet:
    """A set that came from outside, in our spelling. Raises ValueError where it is none."""
    if not isinstance(given, dict) or depth > MAX_DEPTH:
        raise ValueError("a set of fields must be an object, and not too deep")
    out: FieldSet = {}
    for key, inner in given.items():
        if key == ".":
            if inner:
                raise ValueError('nothing may be below "."')
            out["."] = {}
            continue
        below = canonical_set(inner, depth + 1)
        out[_canonical_key(key)] = _tidy(below)
    return out


def _union(one: FieldSet, two: FieldSet) -> FieldSet:
    if not one or not two:
        return member(one or two)
    out = dict(one)
    for key, inner in two.items():
        mine = out.get(key)
        out[key] = inner if mine is None or mine is inner else _union(mine, inner)
    return out


def _less(one: FieldSet, two: FieldSet) -> FieldSet | None:
    gone = is_member(two)
    if not one:
        return None if gone else one
    left = _less_children(one, two)
    if gone:
        left.pop(".", None)
    if not left:
        return None
    return _tidy(left)


def _less_children(one: FieldSet, two: FieldSet) -> FieldSet:
    left: FieldSet = {}
    for key, inner in one.items():
        other = two.get(key)
        if key == "." or other is None:
            left[key] = inner
        else:
            rest = _less(inner, other)
            if rest is not None:
                left[key] = rest
    return left


def _tidy(node: FieldSet) -> FieldSet:
    """A member with nothing below it is {}."""
    return {} if len(node) == 1 and "." in node else node


def _intersection(one: FieldSet, two: FieldSet) -> FieldSet | None:
    both = is_member(one) and is_member(two)
    below = intersection(without_itself(one), without_itself(two))
    if both:
        return member(below)
    return below or None


def _canonical_key(key: str) -> str:
    kind, rest = key[:2], key[2:]
    if kind == "f:":
        return key
    value = orjson.loads(rest)  # a JSONDecodeError is a ValueError
    if kind == "k:" and isinstance(value, dict):
        return "k:" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    if kind == "v:" or (kind == "i:" and isinstance(value, int)):
        return kind + orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    raise ValueError(f"{key!r} is no path element")


def _element_text(element: str) -> str:
    kind, rest = element[0], element[2:]
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            keys = orjson.loads(rest).items()
            return (
                "[" + ",".join(f"{key}={orjson.dumps(item).decode()}" for key, item in keys) + "]"
            )
        case "v":
            return f"[={rest}]"
    return f"[{rest}]"
