"""The values of CEL that Python does not have, and what holds between any two.

Job: unsigned numbers, times, optionals; the type of a value, equality, order, JSON.
Invariant: equality never fails: what cannot be compared is not equal.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Any

from sampan.api.cel.language import types
from sampan.api.cel.language.errors import EvaluationError, no_overload
from sampan.api.cel.language.types import Type
from sampan.api.quantity import Quantity
from sampan.core.fast_dataclass import dataclass

Value = Any  # whatever an expression may come to

NANO = 10**9
INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
QUANTITY, IP, CIDR = (
    types.opaque_type(item) for item in ("kubernetes.Quantity", "net.IP", "net.CIDR")
)
_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300799  # years 1 to 9999


class Uint(int):
    """1u is not 1, though they are equal."""

    __slots__ = ()


class _InTime:
    """What has an order by its nanoseconds."""

    __slots__ = ()
    nanos: int

    def __lt__(self, other: "_InTime") -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: "_InTime") -> bool:
        return self.nanos <= other.nanos


@dataclass(frozen=True, slots=True)
class Timestamp(_InTime):
    nanos: int  # since 1970

    def __post_init__(self) -> None:
        if not _FIRST_SECOND * NANO <= self.nanos < (_LAST_SECOND + 1) * NANO:
            raise EvaluationError("timestamp overflow")


@dataclass(frozen=True, slots=True)
class Duration(_InTime):
    nanos: int

    def __post_init__(self) -> None:
        if not INT_MIN <= self.nanos <= INT_MAX:
            raise EvaluationError("duration overflow")


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """`optional.of(1)`, or nothing at all."""

    value: Value = None
    present: bool = True


ABSENT = OptionalValue(None, False)


@dataclass(frozen=True, slots=True)
class BoolKey:
    """A bool as the key of a map: to Python True is 1, to CEL it is not."""

    value: bool


_OF: dict[type, Type] = {
    int: types.INT, Uint: types.UINT, float: types.DOUBLE, bool: types.BOOL, str: types.STRING,
    bytes: types.BYTES, type(None): types.NULL, list: types.LIST, tuple: types.LIST,
    dict: types.MAP, Timestamp: types.TIMESTAMP, Duration: types.DURATION, Type: types.TYPE,
    OptionalValue: types.OPTIONAL, Quantity: QUANTITY, IPv4Address: IP, IPv6Address: IP,
    IPv4Interface: CIDR, IPv6Interface: CIDR,
}  # fmt: skip
_NUMBERS = frozenset({int, Uint, float})
_DIRECT = frozenset({int, Uint, float, str, bool, bytes, type(None), Timestamp, Duration, Type})
_ORDERED = frozenset({str, bool, bytes, Timestamp, Duration})


def type_of(value: Value) -> Type:
    """Without parameters: a list is a list."""
    found = _OF.get(type(value))
    if found is not None:
        return found
    if isinstance(value, Mapping):
        return types.MAP
    own: Type = value.cel_type  # every other value of a library says it
    return own


def int_value(number: int) -> int:
    if not INT_MIN <= number <= INT_MAX:
        raise EvaluationError("integer overflow")
    return number


def uint_value(number: int) -> Uint:
    if not 0 <= number <= UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


def equal(left: Value, right: Value) -> bool:
    kind, other = type(left), type(right)
    if kind is other and kind in _DIRECT:
        return bool(left == right)
    if kind in _NUMBERS and other in _NUMBERS:
        return bool(left == right)
    if isinstance(left, list | tuple):
        return (
            isinstance(right, list | tuple)
            and len(left) == len(right)
            and all(map(equal, left, right))
        )
    if isinstance(left, Mapping):
        return isinstance(right, Mapping) and _same_entries(left, right)
    if kind is OptionalValue and other is OptionalValue:
        same = left.present == right.present
        return same and (not left.present or equal(left.value, right.value))
    return kind is other and bool(left == right)


def _same_entries(left: Mapping[Any, Value], right: Mapping[Any, Value]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and equal(value, right[key]) for key, value in left.items())


def comparable(left: Value, right: Value) -> None:
    """Raises EvaluationError where there is no order between the two."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        return
    if kind is not other or kind not in _ORDERED:
        raise no_overload()


def map_key(value: Value) -> Value:
    """How a value is kept as a key."""
    kind = type(value)
    if kind is str or kind is int or kind is Uint:
        return value
    if kind is bool:
        return BoolKey(value)
    if kind is float:
        return value
    raise EvaluationError(f"unsupported key type: {type_of(value)}")


def shown_key(key: Value) -> Value:
    return key.value if type(key) is BoolKey else key


def keys_of(entries: Mapping[Any, Value]) -> list[Value]:
    return [shown_key(entry) for entry in entries]
