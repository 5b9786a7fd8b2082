"""Optional values: what may be there or not.

Job: optional.of, ofNonZeroValue, none; hasValue, value, or, orValue.
"""

from sampan.api.cel.language import macros
from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.types import OPTIONAL
from sampan.api.cel.language.values import ABSENT, Duration, OptionalValue, Value

OPTIONALS = Library("optional", macros=macros.OPTIONALS, types=(OPTIONAL,))


@OPTIONALS.function("optional.of", "V", to="optional(V)")
def _of(value: Value) -> OptionalValue:
    return OptionalValue(value)


@OPTIONALS.function("optional.none", to="optional(V)")
def _none() -> OptionalValue:
    return ABSENT


@OPTIONALS.function("optional.ofNonZeroValue", "V", to="optional(V)")
def _of_non_zero(value: Value) -> OptionalValue:
    if isinstance(value, Duration):
        return OptionalValue(value) if value.nanos else ABSENT
    return OptionalValue(value) if value else ABSENT


@OPTIONALS.member("optional(V)", "hasValue", to="bool")
def _has_value(optional: OptionalValue) -> bool:
    return optional.present


@OPTIONALS.member("optional(V)", "value", to="V")
def _value(optional: OptionalValue) -> Value:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


@OPTIONALS.member("optional(V)", "or", "optional(V)", to="optional(V)")
def _or(optional: OptionalValue, other: OptionalValue) -> OptionalValue:
    return optional if optional.present else other


@OPTIONALS.member("optional(V)", "orValue", "V", to="V")
def _or_value(optional: OptionalValue, other: Value) -> Value:
    return optional.value if optional.present else other
