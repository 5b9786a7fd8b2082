"""Extensions of CEL that are not Kubernetes' own: sets, math, encoders, bindings.

Job: what cel-go calls ext.Sets, ext.Math, ext.Encoders, ext.Bindings, ext.TwoVarComprehensions.
"""

import math
from base64 import b64decode, b64encode
from binascii import Error as NotBase64

from sampan.api.cel.language import cost, macros
from sampan.api.cel.language.errors import EvaluationError, no_overload
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.values import Uint, Value, comparable, equal, int_value, uint_value

SETS = Library("sets")
MATH = Library("math")
ENCODERS = Library("encoders")
BINDINGS = Library("bindings", macros=macros.BINDINGS)
TWO_VARIABLES = Library("two variables", macros=macros.TWO_VARIABLES)
_MOST_SHIFT = 63


def _in(value: Value, items: list[Value]) -> bool:
    return any(equal(value, item) for item in items)


def _product(first: list[Value], second: list[Value]) -> int:
    return cost.read(first, 1) * cost.read(second, 1)


@SETS.function("sets.contains", "list(T)", "list(T)", to="bool", cost=_product)
def _contains(items: list[Value], part: list[Value]) -> bool:
    return all(_in(item, items) for item in part)


@SETS.function("sets.equivalent", "list(T)", "list(T)", to="bool", cost=_product)
def _equivalent(first: list[Value], second: list[Value]) -> bool:
    return _contains(first, second) and _contains(second, first)


@SETS.function("sets.intersects", "list(T)", "list(T)", to="bool", cost=_product)
def _intersects(first: list[Value], second: list[Value]) -> bool:
    return any(_in(item, second) for item in first)


def _best(values: tuple[Value, ...], greatest: bool) -> Value:
    if len(values) == 1 and isinstance(values[0], list | tuple):
        values = tuple(values[0])
        if not values:
            name = "greatest" if greatest else "least"
            raise EvaluationError(f"math.@{'max' if greatest else 'min'}(list) argument must not"
                                  f" be empty: math.{name}")  # fmt: skip
    best = values[0]
    for value in values:
        if type(value) not in (int, Uint, float):
            raise no_overload()
        comparable(best, value)
        if (value > best) if greatest else (value < best):
            best = value
    return best


def _greatest(*values: Value) -> Value:
    return _best(values, True)


def _least(*values: Value) -> Value:
    return _best(values, False)


for _count in range(1, 9):
    # cel-go takes any number of them; an overload has a fixed one.
    MATH.function("math.greatest", *["dyn"] * _count, to="dyn")(_greatest)
    MATH.function("math.least", *["dyn"] * _count, to="dyn")(_least)


@MATH.function("math.abs", "int", to="int")
@MATH.function("math.abs", "uint", to="uint")
@MATH.function("math.abs", "double", to="double")
def _abs(value: Value) -> Value:
    return int_value(abs(value)) if type(value) is int else type(value)(abs(value))


@MATH.function("math.sign", "int", to="int")
@MATH.function("math.sign", "uint", to="uint")
@MATH.function("math.sign", "double", to="double")
def _sign(value: Value) -> Value:
    if type(value) is float and math.isnan(value):
        return value
    return type(value)((value > 0) - (value < 0))


def _rounding(name: str) -> None:
    @MATH.function(f"math.{name}", "double", to="double")
    def rounded(value: float) -> float:
        if not math.isfinite(value):
            return value
        if name == "round":  # halves away from zero
            return math.copysign(math.floor(abs(value) + 0.5), value)
        return float(getattr(math, name)(value))


for _name in ("ceil", "floor", "trunc", "round"):
    _rounding(_name)


@MATH.function("math.isInf", "double", to="bool")
def _is_inf(value: float) -> bool:
    return math.isinf(value)


@MATH.function("math.isNaN", "double", to="bool")
def _is_nan(value: float) -> bool:
    return math.isnan(value)


@MATH.function("math.isFinite", "double", to="bool")
def _is_finite(value: float) -> bool:
    return math.isfinite(value)


@MATH.function("math.sqrt", "double", to="double")
@MATH.function("math.sqrt", "int", to="double")
@MATH.function("math.sqrt", "uint", to="double")
def _sqrt(value: Value) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _bitwise(name: str, function: object) -> None:
    assert callable(function)

    @MATH.function(f"math.{name}", "int", "int", to="int")
    @MATH.function(f"math.{name}", "uint", "uint", to="uint")
    def combined(left: Value, right: Value) -> Value:
        return type(left)(function(int(left), int(right)))


_bitwise("bitAnd", int.__and__)
_bitwise("bitOr", int.__or__)
_bitwise("bitXor", int.__xor__)


@MATH.function("math.bitNot", "int", to="int")
def _bit_not(value: int) -> int:
    return ~value


@MATH.function("math.bitNot", "uint", to="uint")
def _bit_not_unsigned(value: Uint) -> Uint:
    return uint_value(2**64 - 1 - value)


@MATH.function("math.bitShiftLeft", "int", "int", to="int")
@MATH.function("math.bitShiftLeft", "uint", "int", to="uint")
def _shift_left(value: Value, by: int) -> Value:
    bits = 0 if _shift_count(by, "Left") > _MOST_SHIFT else (int(value) << by) % 2**64
    if type(value) is Uint:
        return Uint(bits)
    return bits - 2**64 if bits >= 2**63 else bits


@MATH.function("math.bitShiftRight", "int", "int", to="int")
@MATH.function("math.bitShiftRight", "uint", "int", to="uint")
def _shift_right(value: Value, by: int) -> Value:
    bits = 0 if _shift_count(by, "Right") > _MOST_SHIFT else (int(value) % 2**64) >> by
    if type(value) is Uint:
        return Uint(bits)
    return bits - 2**64 if bits >= 2**63 else bits


def _shift_count(by: int, side: str) -> int:
    if by < 0:
        raise EvaluationError(f"math.bitShift{side}() negative offset: {by}")
    return by


@ENCODERS.function("base64.encode", "bytes", to="string", cost=cost.first_read)
def _encode(value: bytes) -> str:
    return b64encode(value).decode()


@ENCODERS.function("base64.decode", "string", to="bytes", cost=cost.first_read)
def _decode(text: str) -> bytes:
    """With padding or without it."""
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (NotBase64, ValueError) as error:
        raise EvaluationError(f"illegal base64 data: {error}") from error
