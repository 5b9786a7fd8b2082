"""Go's values, as templates meet them.

Job: which Go type a value has; text by fmt's %v. Pure.

JSON data are maps, slices, strings, bools and float64; constants of a template are ints. A value
that came out of a map or a slice has the static type `interface {}`, which some messages name: it
is Boxed.
"""

from typing import Any

from sampan.api.go_text import go_value
from sampan.core.fast_dataclass import dataclass


class Byte(int):
    """A uint8: what indexing a string gives."""


@dataclass(frozen=True, slots=True)
class Boxed:
    """A value in an interface."""

    value: Any


class _Nothing:
    """No value at all, as reflect.Value{}: a key that is not there."""

    def __repr__(self) -> str:
        return "<nothing>"


NOTHING = _Nothing()


def unboxed(value: Any) -> Any:
    """What an interface holds: of a nil one nothing."""
    if not isinstance(value, Boxed):
        return value
    return NOTHING if value.value is None else value.value


def type_name(value: Any) -> str:
    """As Go's %T, of something that is there."""
    match value:
        case Boxed():
            return "interface {}"
        case bool():
            return "bool"
        case Byte():
            return "uint8"
        case int():
            return "int"
        case float():
            return "float64"
        case complex():
            return "complex128"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case dict():
            return "map[string]interface {}"
    return "<nil>"


def kind_of(value: Any) -> str:
    """Of values that can be compared; empty for others."""
    match value:
        case bool():
            return "bool"
        case Byte():
            return "uint"
        case int():
            return "int"
        case float():
            return "float"
        case complex():
            return "complex"
        case str():
            return "string"
    return ""


def is_true(value: Any) -> bool:
    value = unboxed(value)
    return value is not NOTHING and bool(value)


def text_of(value: Any) -> str:
    """As %v."""
    value = unboxed(value)
    if value is NOTHING:
        return "<nil>"
    if isinstance(value, complex):
        return complex_text(value)
    return go_value(value)


def complex_text(value: complex) -> str:
    imaginary = go_value(value.imag)
    sign = "" if imaginary.startswith(("+", "-")) else "+"
    return f"({go_value(value.real)}{sign}{imaginary}i)"


def data_of(value: Any) -> Any:
    """JSON as Go reads it: every number is a float64."""
    match value:
        case bool():
            return value
        case int():
            return float(value)
        case dict():
            return {key: data_of(item) for key, item in value.items()}
        case list():
            return [data_of(item) for item in value]
    return value
