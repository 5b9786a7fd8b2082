"""Operators: arithmetic, comparison, membership, indexing.

Job: what `+ - * / % < == in []` do with any two values.
Invariant: numbers never wrap around: what does not fit in 64 bits is an error.
"""

import math
from collections.abc import Callable, Mapping
from itertools import product

from sampan.api.cel.language.errors import EvaluationError, no_overload
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.values import (
    Duration,
    OptionalValue,
    Timestamp,
    Uint,
    Value,
    comparable,
    equal,
    int_value,
    map_key,
    type_of,
    uint_value,
)

OPERATORS = Library("operators")


def add(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is not type(right):
        return _time_sum(left, right, 1)
    if kind is int:
        return int_value(left + right)
    if kind in (str, float, bytes):
        return left + right
    if kind is list or kind is tuple:
        return [*left, *right]
    if kind is Uint:
        return uint_value(left + right)
    if kind is Duration:
        return Duration(left.nanos + right.nanos)
    raise no_overload()


def subtract(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is not type(right):
        return _time_sum(left, right, -1)
    if kind is int:
        return int_value(left - right)
    if kind is float:
        return left - right
    if kind is Uint:
        return uint_value(left - right)
    if kind is Duration or kind is Timestamp:
        return Duration(left.nanos - right.nanos)
    raise no_overload()


def _time_sum(left: Value, right: Value, sign: int) -> Value:
    """A timestamp and a duration, in either order where they are added."""
    if type(left) is Timestamp and type(right) is Duration:
        return Timestamp(left.nanos + sign * right.nanos)
    if type(left) is Duration and type(right) is Timestamp and sign > 0:
        return Timestamp(left.nanos + right.nanos)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and sign > 0:
        return [*left, *right]
    raise no_overload()


def multiply(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return int_value(left * right)
        if kind is float:
            return left * right
        if kind is Uint:
            return uint_value(left * right)
    raise no_overload()


def divide(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is not type(right):
        raise no_overload()
    if kind is float:
        return _quotient(left, right)
    if kind is not int and kind is not Uint:
        raise no_overload()
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)  # towards zero, unlike Python's
    if kind is Uint:
        return Uint(quotient)
    return int_value(quotient if (left < 0) == (right < 0) else -quotient)


def _quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def remainder(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is not type(right) or (kind is not int and kind is not Uint):
        raise no_overload()
    if right == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(left) % abs(right)
    return Uint(rest) if kind is Uint else (-rest if left < 0 else rest)


def negate(value: Value) -> Value:
    kind = type(value)
    if kind is int:
        return int_value(-value)
    if kind is float:
        return -value
    raise no_overload()


def invert(value: Value) -> Value:
    if type(value) is not bool:
        raise no_overload()
    return not value


def less(left: Value, right: Value) -> bool:
    comparable(left, right)
    return bool(left < right)


def less_or_equal(left: Value, right: Value) -> bool:
    comparable(left, right)
    return bool(left <= right)


def greater(left: Value, right: Value) -> bool:
    comparable(left, right)
    return bool(left > right)


def greater_or_equal(left: Value, right: Value) -> bool:
    comparable(left, right)
    return bool(left >= right)


def unequal(left: Value, right: Value) -> bool:
    return not equal(left, right)


def contains(value: Value, container: Value) -> bool:
    if isinstance(container, Mapping):
        return _is_key(value) and map_key(value) in container
    if not isinstance(container, list | tuple):
        raise no_overload()
    return any(equal(value, item) for item in container)


def _is_key(value: Value) -> bool:
    return isinstance(value, str | int | float)


def index(container: Value, key: Value) -> Value:
    if type(container) is OptionalValue:
        return optional_index(container, key)
    found = _lookup(container, key)
    if found is None:
        if isinstance(container, Mapping):
            raise EvaluationError(f"no such key: {_key_text(key)}")
        raise EvaluationError(f"index out of bounds: {_key_text(key)}")
    return found[0]


def optional_index(container: Value, key: Value) -> OptionalValue:
    if type(container) is OptionalValue:
        if not container.present:
            return container
        container = container.value
    found = _lookup(container, key)
    return OptionalValue(None, False) if found is None else OptionalValue(found[0])


def _lookup(container: Value, key: Value) -> tuple[Value] | None:
    if isinstance(container, Mapping):
        if not _is_key(key):
            raise EvaluationError(f"unsupported key type: {type_of(key)}")
        kept = map_key(key)
        try:
            # Not looked for first: some mappings answer for keys that they do not list.
            return (container[kept],)
        except KeyError:
            return None
    if not isinstance(container, list | tuple):
        raise no_overload()
    if type(key) is float and key.is_integer():
        key = int(key)
    if type(key) is not int and type(key) is not Uint:
        raise EvaluationError(f"unsupported index type '{type_of(key)}' in list")
    return (container[key],) if 0 <= key < len(container) else None


def _key_text(key: Value) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    return str(key)


DIRECT: dict[str, Callable[..., Value]] = {
    "_+_": add, "_-_": subtract, "_*_": multiply, "_/_": divide, "_%_": remainder, "-_": negate,
    "!_": invert, "_<_": less, "_<=_": less_or_equal, "_>_": greater, "_>=_": greater_or_equal,
    "_==_": equal, "_!=_": unequal, "@in": contains, "_[_]": index, "_[?_]": optional_index,
}  # fmt: skip
SIZED = frozenset({"_+_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})  # texts cost by length

_DECLARED: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "_+_": [
        *(
            ((item, item), item)
            for item in ("int", "uint", "double", "string", "bytes", "duration")
        ),
        (("list(A)", "list(A)"), "list(A)"),
        (("timestamp", "duration"), "timestamp"),
        (("duration", "timestamp"), "timestamp"),
    ],
    "_-_": [
        *(((item, item), item) for item in ("int", "uint", "double", "duration")),
        (("timestamp", "timestamp"), "duration"),
        (("timestamp", "duration"), "timestamp"),
    ],
    "_*_": [((item, item), item) for item in ("int", "uint", "double")],
    "_/_": [((item, item), item) for item in ("int", "uint", "double")],
    "_%_": [((item, item), item) for item in ("int", "uint")],
    "-_": [((item,), item) for item in ("int", "double")],
    "!_": [(("bool",), "bool")],
    "_==_": [(("A", "A"), "bool")],
    "_!=_": [(("A", "A"), "bool")],
    "_?_:_": [(("bool", "A", "A"), "A")],
    "@in": [(("A", "list(A)"), "bool"), (("A", "map(A, B)"), "bool")],
    "_[_]": [
        (("list(A)", "int"), "A"),
        (("map(A, B)", "A"), "B"),
        (("optional(list(V))", "int"), "optional(V)"),
        (("optional(map(K, V))", "K"), "optional(V)"),
    ],
    "_[?_]": [
        (("list(V)", "int"), "optional(V)"),
        (("optional(list(V))", "int"), "optional(V)"),
        (("map(K, V)", "K"), "optional(V)"),
        (("optional(map(K, V))", "K"), "optional(V)"),
    ],
}
_SAME = ("bool", "string", "bytes", "timestamp", "duration")
_COMPARED = [
    *((item, item) for item in _SAME),
    *product(("int", "uint", "double"), repeat=2),
]
for _name in ("_<_", "_<=_", "_>_", "_>=_"):
    _DECLARED[_name] = [(pair, "bool") for pair in _COMPARED]
for _name, _overloads in _DECLARED.items():
    for _taken, _gives in _overloads:
        # The conditional is the evaluator's own; its entry is for the checker.
        OPERATORS.function(_name, *_taken, to=_gives)(DIRECT.get(_name, add))
