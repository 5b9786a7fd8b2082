"""Kubernetes' own small libraries: lists, regular expressions, quantities, JSON pointers.

Job: isSorted, sum, min, max, indexOf on lists; find and findAll; quantity; jsonpatch.escapeKey.
"""

import math
from itertools import islice, pairwise

from sampan.api import quantity
from sampan.api.cel.language import cost
from sampan.api.cel.language.errors import EvaluationError, no_overload
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.operators import add
from sampan.api.cel.language.values import (
    QUANTITY,
    Duration,
    Uint,
    Value,
    comparable,
    equal,
    int_value,
)
from sampan.api.cel.libraries.regex import find_all_cost, match_cost
from sampan.api.cel.libraries.standard import regex_of
from sampan.api.quantity import Quantity, QuantityError

LISTS = Library("kubernetes.lists")
REGEX = Library("kubernetes.regex")
QUANTITIES = Library("kubernetes.quantity", types=(QUANTITY,))
JSON_PATCH = Library("kubernetes.jsonpatch")

_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMED = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
_Q = QUANTITY.name


def _is_sorted(items: list[Value]) -> bool:
    for item, other in pairwise(items):
        comparable(item, other)
        if other < item:
            return False
    return True


def _best(items: list[Value], name: str) -> Value:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    best = items[0]
    for item in items[1:]:
        comparable(best, item)
        if (item < best) if name == "min" else (item > best):
            best = item
    return best


def _smallest(items: list[Value]) -> Value:
    return _best(items, "min")


def _largest(items: list[Value]) -> Value:
    return _best(items, "max")


def _declare_lists() -> None:
    for kind in _ORDERED:
        LISTS.member(f"list({kind})", "isSorted", to="bool", cost=cost.traversal_cost)(_is_sorted)
        LISTS.member(f"list({kind})", "min", to=kind, cost=cost.traversal_cost)(_smallest)
        LISTS.member(f"list({kind})", "max", to=kind, cost=cost.traversal_cost)(_largest)
    for kind in _SUMMED:
        _declare_sum(kind)


def _declare_sum(kind: str) -> None:
    @LISTS.member(f"list({kind})", "sum", to=kind, cost=cost.traversal_cost)
    def total(items: list[Value]) -> Value:
        # Only the checker knows of what an empty list is.
        made = _SUMMED[kind] if not items else items[0]
        for item in items[1:]:
            made = add(made, item)
        if type(made) not in (int, Uint, float, Duration):
            raise no_overload()
        return made


@LISTS.member("list(T)", "indexOf", "T", to="int", cost=cost.traversal_cost)
def _index_of(items: list[Value], value: Value) -> int:
    return next((at for at, item in enumerate(items) if equal(item, value)), -1)


@LISTS.member("list(T)", "lastIndexOf", "T", to="int", cost=cost.traversal_cost)
def _last_index_of(items: list[Value], value: Value) -> int:
    return next((at for at in reversed(range(len(items))) if equal(items[at], value)), -1)


@REGEX.member("string", "find", "string", to="string", cost=match_cost)
def _find(text: str, pattern: str) -> str:
    found = regex_of(pattern).find(text)
    return text[slice(*found)] if found is not None else ""


@REGEX.member("string", "findAll", "string", to="list(string)", cost=find_all_cost)
@REGEX.member("string", "findAll", "string", "int", to="list(string)", cost=find_all_cost)
def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = regex_of(pattern).find_all(text)
    return list(found if most < 0 else islice(found, most))


@QUANTITIES.function("quantity", "string", to=_Q, cost=cost.first_read)
def parse_quantity(text: str) -> Quantity:
    try:
        return quantity.parse(text)
    except QuantityError as error:
        raise EvaluationError(str(error)) from error


@QUANTITIES.function("isQuantity", "string", to="bool", cost=cost.first_read)
def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except QuantityError:
        return False
    return True


@QUANTITIES.member(_Q, "sign", to="int")
def _sign(value: Quantity) -> int:
    return (value.nanos > 0) - (value.nanos < 0)


@QUANTITIES.member(_Q, "isInteger", to="bool")
def _is_integer(value: Quantity) -> bool:
    return value.nanos % quantity.NANO == 0 and abs(value.nanos) < 2**63 * quantity.NANO


@QUANTITIES.member(_Q, "asInteger", to="int")
def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return value.nanos // quantity.NANO


@QUANTITIES.member(_Q, "asApproximateFloat", to="double")
def _as_float(value: Quantity) -> float:
    try:
        return value.as_float()
    except OverflowError:
        return math.inf if value.nanos > 0 else -math.inf


@QUANTITIES.member(_Q, "add", _Q, to=_Q)
def _add(value: Quantity, other: Quantity) -> Quantity:
    return value + other


@QUANTITIES.member(_Q, "add", "int", to=_Q)
def _added_int(value: Quantity, other: int) -> Quantity:
    return value + quantity.from_value(other)


@QUANTITIES.member(_Q, "sub", _Q, to=_Q)
def _subtract(value: Quantity, other: Quantity) -> Quantity:
    return value - other


@QUANTITIES.member(_Q, "sub", "int", to=_Q)
def _subtracted_int(value: Quantity, other: int) -> Quantity:
    return value - quantity.from_value(other)


@QUANTITIES.member(_Q, "isLessThan", _Q, to="bool")
def _is_less(value: Quantity, other: Quantity) -> bool:
    return value < other


@QUANTITIES.member(_Q, "isGreaterThan", _Q, to="bool")
def _is_greater(value: Quantity, other: Quantity) -> bool:
    return other < value


@QUANTITIES.member(_Q, "compareTo", _Q, to="int")
def _compare(value: Quantity, other: Quantity) -> int:
    return int_value((value.nanos > other.nanos) - (value.nanos < other.nanos))


@JSON_PATCH.function("jsonpatch.escapeKey", "string", to="string", cost=cost.first_read)
def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


_declare_lists()
