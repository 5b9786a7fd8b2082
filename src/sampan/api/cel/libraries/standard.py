"""The functions that CEL itself defines.

Job: conversions, size, text tests, type and dyn.
Invariant: a conversion that loses its number is an error.
"""

import math
import re
from decimal import Decimal

from sampan.api.cel.language import cost, macros
from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.types import Type
from sampan.api.cel.language.values import Uint, Value, int_value, type_of, uint_value
from sampan.api.cel.libraries.regex import NotRegex, Regex, compile_pattern, match_cost
from sampan.core.digits import whole_number
from sampan.core.patterns import lazy_pattern

FUNCTIONS = Library("standard", macros=macros.STANDARD)

_FLOAT = lazy_pattern(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE
)
_TRUTHS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def _cannot(value: Value, to: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_of(value)}' to '{to}'")


@FUNCTIONS.function("dyn", "A", to="dyn")
def _dyn(value: Value) -> Value:
    return value


@FUNCTIONS.function("type", "A", to="type(A)")
def _type(value: Value) -> Type:
    return type_of(value)


@FUNCTIONS.function("int", "int", to="int")
@FUNCTIONS.function("uint", "uint", to="uint")
@FUNCTIONS.function("double", "double", to="double")
@FUNCTIONS.function("string", "string", to="string")
@FUNCTIONS.function("bytes", "bytes", to="bytes")
@FUNCTIONS.function("bool", "bool", to="bool")
def _same(value: Value) -> Value:
    return value


@FUNCTIONS.function("int", "uint", to="int")
def _int_from_uint(value: Uint) -> int:
    return int_value(int(value))


@FUNCTIONS.function("int", "double", to="int")
def _int_from_double(value: float) -> int:
    # As cel-go: the largest and smallest doubles that fit are excluded, being rounded ones.
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


@FUNCTIONS.function("int", "string", to="int")
def _int_from_string(value: str) -> int:
    is_number = re.fullmatch(r"[+-]?\d+", value, re.ASCII) is not None
    if not is_number or not -(2**63) <= whole_number(value) < 2**63:
        raise _cannot(value, "int")
    return whole_number(value)


@FUNCTIONS.function("uint", "int", to="uint")
def _uint_from_int(value: int) -> Uint:
    return uint_value(value)


@FUNCTIONS.function("uint", "double", to="uint")
def _uint_from_double(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(int(value))


@FUNCTIONS.function("uint", "string", to="uint")
def _uint_from_string(value: str) -> Uint:
    if re.fullmatch(r"\d+", value, re.ASCII) is None or whole_number(value) >= 2**64:
        raise _cannot(value, "uint")
    return Uint(whole_number(value))


@FUNCTIONS.function("double", "int", to="double")
@FUNCTIONS.function("double", "uint", to="double")
def _double_from_number(value: int) -> float:
    return float(value)


@FUNCTIONS.function("double", "string", to="double")
def _double_from_string(value: str) -> float:
    if _FLOAT.fullmatch(value) is None:
        raise _cannot(value, "double")
    return float(value)


@FUNCTIONS.function("string", "int", to="string")
@FUNCTIONS.function("string", "uint", to="string")
def _string_from_number(value: int) -> str:
    return str(int(value))


@FUNCTIONS.function("string", "bool", to="string")
def _string_from_bool(value: bool) -> str:
    return "true" if value else "false"


@FUNCTIONS.function("string", "double", to="string")
def double_text(value: float) -> str:
    """As Go prints %g: the fewest digits, an exponent below 0.0001 and from a million on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(power, int)
    exponent = len(digits) + power - 1
    shown = "".join(map(str, digits))
    minus = "-" if sign else ""
    if value != 0 and (exponent < -4 or exponent >= 6):
        fraction = f".{shown[1:]}" if len(shown) > 1 else ""
        return f"{minus}{shown[0]}{fraction}e{exponent:+03d}"
    return f"{minus}{Decimal(repr(abs(value))).normalize():f}"


@FUNCTIONS.function("string", "bytes", to="string", cost=cost.first_read)
def _string_from_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from error


@FUNCTIONS.function("bytes", "string", to="bytes", cost=cost.first_read)
def _bytes_from_string(value: str) -> bytes:
    return value.encode()


@FUNCTIONS.function("bool", "string", to="bool")
def _bool_from_string(value: str) -> bool:
    if value not in _TRUTHS:
        raise _cannot(value, "bool")
    return _TRUTHS[value]


@FUNCTIONS.function("size", "string", to="int")
@FUNCTIONS.function("size", "bytes", to="int")
@FUNCTIONS.function("size", "list(A)", to="int")
@FUNCTIONS.function("size", "map(A, B)", to="int")
@FUNCTIONS.member("string", "size", to="int")
@FUNCTIONS.member("bytes", "size", to="int")
@FUNCTIONS.member("list(A)", "size", to="int")
@FUNCTIONS.member("map(A, B)", "size", to="int")
def _size(value: Value) -> int:
    return len(value)


@FUNCTIONS.member("string", "contains", "string", to="bool", cost=cost.search_cost)
def _contains(text: str, part: str) -> bool:
    return part in text


@FUNCTIONS.member("string", "startsWith", "string", to="bool", cost=cost.second_read)
def _starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


@FUNCTIONS.member("string", "endsWith", "string", to="bool", cost=cost.second_read)
def _ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


@FUNCTIONS.function("matches", "string", "string", to="bool", cost=match_cost)
@FUNCTIONS.member("string", "matches", "string", to="bool", cost=match_cost)
def _matches(text: str, pattern: str) -> bool:
    return regex_of(pattern).matches(text)


def regex_of(pattern: str) -> Regex:
    try:
        return compile_pattern(pattern)
    except NotRegex as error:
        raise EvaluationError(str(error)) from error
