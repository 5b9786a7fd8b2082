"""Decoding as Go does it: JSON data in, an object of a known type out.

Job: drop unknown fields and nulls, bring quantities, times and bytes to their one spelling, and say
    what does not fit, in upstream's words. Where a type's Go form is known, what comes out is what
    Go would write again: zeros that it leaves out are gone, what it always writes is there. Pure;
    the input is never changed.
Invariant: what was decoded decodes to itself, with nothing unknown.
"""

import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sampan.api import quantity
from sampan.api.objects import copy_of
from sampan.api.schema.field_kinds import Type, short_name
from sampan.core.patterns import lazy_pattern

# Where in the object we are: (), or (path of the holder, key or index). Linked, so that a step down
# costs one tuple; it becomes text only when something is wrong.
Path = tuple[Any, ...]
Checker = Callable[[Any, Path, list[Path]], Any]
FieldsOf = Callable[[str], Mapping[str, Type]]


class GoForm(NamedTuple):
    """How Go writes the fields of a type."""

    always: frozenset[str]  # in any case
    pointers: frozenset[str]  # scalars whose zero it tells from nothing
    lists: frozenset[str]  # whose emptiness it tells from nothing


GoFormOf = Callable[[str], GoForm | None]

_INTEGER_LIMITS = {"int32": 2**31, "int64": 2**63, "": 2**63}
_SECONDS = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_LAYOUTS = {
    "date-time": "2006-01-02T15:04:05Z07:00",
    "micro-time": "2006-01-02T15:04:05.000000Z07:00",
}


class Mismatch(Exception):
    """A value of the wrong type: `json: cannot unmarshal … into Go struct field …`."""

    def __init__(self, value: str, path: Path, wanted: str) -> None:
        super().__init__(value, path, wanted)
        self.value, self.path, self.wanted = value, path, wanted


class Malformed(Exception):
    """A value that its own type refused, worded by that type alone."""


# Formats of values that are no zero: Go holds them by pointer, or they say what they are.
_TIMES = ("date-time", "micro-time")
_NO_ZERO = frozenset({*_TIMES, "quantity", "int-or-string"})


class Decoder:
    """Compiles one checker per definition, when it is first met."""

    def __init__(self, fields_of: FieldsOf, go_form_of: GoFormOf = lambda _name: None) -> None:
        self._fields_of = fields_of
        self._go_form_of = go_form_of
        self._structs: dict[str, Checker] = {}

    def struct(self, name: str) -> Checker:
        checker = self._structs.get(name)
        if checker is None:
            checker = self._structs[name] = self._compile(name)
        return checker

    def mismatch_text(self, root: str, problem: Mismatch) -> str:
        """Go names the struct that holds the field, and the way there without indices."""
        holder, words = root, []
        here: Type | None = Type("object", name=root)
        for key in steps_of(problem.path):
            if here is None:
                break
            if here.shape == "object":
                words.append(str(key))
                holder = here.name
                here = self._fields_of(here.name).get(str(key))
            else:
                here = here.element
        into = "value" if not words else f"struct field {short_name(holder)}.{'.'.join(words)}"
        return f"json: cannot unmarshal {problem.value} into Go {into} of type {problem.wanted}"

    def _compile(self, name: str) -> Checker:
        types = self._fields_of(name)
        fields = {key: self._checker(item) for key, item in types.items()}
        form = self._go_form_of(name)
        if form is None:
            return _plain_struct(go_type(Type("object", name=name)), fields)
        always = form.always
        kept = {*always, *form.pointers}
        for key, kind in types.items():
            if kind.shape in ("object", "any") or kind.format in _NO_ZERO:
                kept.add(key)
            elif kind.shape in ("list", "map") and key not in form.lists:
                kept.discard(key)  # empty is nothing: left out, or null where it is always written
            elif key not in kept and fields[key] is _check_string:
                fields[key] = _check_omitted_string
        missing = [(key, self._zero(types[key])) for key in types if key in always]
        return _go_struct(go_type(Type("object", name=name)), fields, frozenset(kept), missing)

    def _zero(self, kind: Type) -> Callable[[], Any]:
        """What Go writes for a field that nobody has set."""
        if kind.shape == "object":
            check = self._later(kind.name)
            return lambda: check({}, (), [])
        zero = (
            None if kind.shape in ("list", "map", "any") or kind.format in _TIMES else zero_of(kind)
        )
        return lambda: zero

    def _checker(self, kind: Type) -> Checker:
        if kind.shape == "object":
            return self._later(kind.name)
        if kind.shape == "list":
            return self._list(kind)
        if kind.shape == "map":
            return self._map(kind)
        if kind.shape == "integer":
            return _integer(kind.format)
        if kind.shape == "string":
            return _STRINGS[kind.format]
        if kind.shape == "any" and short_name(kind.name) in _SCHEMA_OR:
            return self._schema_or(kind.name)
        return {"number": _check_number, "boolean": _check_bool}.get(kind.shape, _check_any)

    def _schema_or(self, name: str) -> Checker:
        """A schema inside of another, or what may stand in its place. As upstream, whose own code
        reads it: a field that it does not know is left out in silence, and errors begin anew."""
        root = f"{name.rpartition('.')[0]}.{_SCHEMA}"
        read, check = self._later(root), _SCHEMA_OR[short_name(name)]

        def check_schema(value: Any) -> Any:
            try:
                return read(value, (), [])
            except Mismatch as problem:
                raise Malformed(self.mismatch_text(root, problem)) from problem

        return lambda value, _path, _unknown: check(value, check_schema)

    def _later(self, name: str) -> Checker:
        """Compiled at first use: most of a type's tree is never visited."""
        structs = self._structs

        def check_reference(value: Any, path: Path, unknown: list[Path]) -> Any:
            check = structs.get(name) or self.struct(name)
            return check(value, path, unknown)

        return check_reference

    def _list(self, kind: Type) -> Checker:
        assert kind.element is not None, kind
        check, wanted, zero = self._checker(kind.element), go_type(kind), zero_of(kind.element)

        def check_list(value: Any, path: Path, unknown: list[Path]) -> Any:
            if type(value) is not list:
                raise Mismatch(json_word(value), path, wanted)
            return [
                check(copy_of(zero) if item is None else item, (path, index), unknown)
                for index, item in enumerate(value)
            ]

        return check_list

    def _map(self, kind: Type) -> Checker:
        assert kind.element is not None, kind
        check, wanted, zero = self._checker(kind.element), go_type(kind), zero_of(kind.element)

        def check_map(value: Any, path: Path, unknown: list[Path]) -> Any:
            if type(value) is not dict:
                raise Mismatch(json_word(value), path, wanted)
            return {
                key: check(copy_of(zero) if item is None else item, (path, key), unknown)
                for key, item in value.items()
            }

        return check_map


def _schema_or_list(value: Any, read: Callable[[Any], Any]) -> Any:
    if type(value) is list:
        return [read({} if item is None else item) for item in value]
    return read(value) if type(value) is dict else None


def _schema_or_bool(value: Any, read: Callable[[Any], Any]) -> Any:
    if type(value) is bool:
        return value
    if type(value) is not dict:
        raise Malformed("boolean or JSON schema expected")
    return read(value)


def _schema_or_texts(value: Any, read: Callable[[Any], Any]) -> Any:
    if type(value) is list:
        wrong = next((item for item in value if type(item) is not str), None)
        if wrong is not None:
            raise Malformed(
                f"json: cannot unmarshal {json_word(wrong)} into Go value of type string"
            )
        return value
    return read(value) if type(value) is dict else None


_SCHEMA = "JSONSchemaProps"
_SCHEMA_OR: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "JSONSchemaPropsOrArray": _schema_or_list,
    "JSONSchemaPropsOrBool": _schema_or_bool,
    "JSONSchemaPropsOrStringArray": _schema_or_texts,
}


def _plain_struct(wanted: str, fields: dict[str, Checker]) -> Checker:
    find = fields.get

    def check_struct(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is not dict:
            raise Mismatch(json_word(value), path, wanted)
        out = {}
        for key, item in value.items():
            check = find(key)
            if check is None:
                unknown.append((path, key))
            elif item is not None:  # null is the absent value, as in Go
                if check is _check_string and type(item) is str:
                    out[key] = item  # the commonest field by far, without a call
                else:
                    out[key] = check(item, (path, key), unknown)
        return out

    return check_struct


def _go_struct(
    wanted: str,
    fields: dict[str, Checker],
    kept: frozenset[str],
    missing: list[tuple[str, Callable[[], Any]]],
) -> Checker:
    """`kept`: whose zero is written; `missing`: what is written where nothing was sent."""
    find = fields.get

    def check_struct(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is not dict:
            raise Mismatch(json_word(value), path, wanted)
        out = {}
        for key, item in value.items():
            check = find(key)
            if check is None:
                unknown.append((path, key))
            elif item is not None:
                if check is _check_string and type(item) is str:
                    out[key] = item  # the commonest fields by far, without a call
                elif check is _check_omitted_string and type(item) is str:
                    if item:
                        out[key] = item
                else:
                    found = check(item, (path, key), unknown)
                    if found or key in kept:
                        out[key] = found
        for key, zero in missing:
            if key not in out:
                out[key] = zero()
        return out

    return check_struct


def steps_of(path: Path) -> list[str | int]:
    steps: list[str | int] = []
    while path:
        path, step = path
        steps.append(step)
    return steps[::-1]


def path_text(path: Path) -> str:
    """`spec.containers[0].image`."""
    text = ""
    for step in steps_of(path):
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def json_word(value: Any) -> str:
    """What Go's decoder calls a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def go_type(kind: Type) -> str:
    if kind.shape == "object":
        package = kind.name.split(".")[-2]
        return f"{package}.{short_name(kind.name)}"
    if kind.shape == "list" and kind.element is not None:
        return f"[]{go_type(kind.element)}"
    if kind.shape == "map" and kind.element is not None:
        return f"map[string]{go_type(kind.element)}"
    by_format = {
        "byte": "[]uint8",
        "date-time": "v1.Time",
        "micro-time": "v1.MicroTime",
        "quantity": "resource.Quantity",
        "int-or-string": "intstr.IntOrString",
        "double": "float64",
    }
    by_shape = {"boolean": "bool", "integer": "int64", "number": "float64", "any": "interface {}"}
    return by_format.get(kind.format) or kind.format or by_shape.get(kind.shape, "string")


def zero_of(kind: Type) -> Any:
    """What null means where a value must stand: in lists and maps."""
    if kind.format == "quantity":
        return "0"
    if kind.format == "int-or-string":
        return 0
    zeros: dict[str, Any] = {
        "object": {}, "list": [], "map": {}, "string": "", "integer": 0, "number": 0,
        "boolean": False, "any": None,
    }  # fmt: skip
    return zeros[kind.shape]


def _check_string(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is not str:
        raise Mismatch(json_word(value), path, "string")
    return value


def _check_omitted_string(value: Any, path: Path, unknown: list[Path]) -> Any:
    return _check_string(value, path, unknown)


def _check_bool(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is not bool:
        raise Mismatch(json_word(value), path, "bool")
    return value


def _check_number(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is not int and type(value) is not float:
        raise Mismatch(json_word(value), path, "float64")
    return value


def _check_any(value: Any, path: Path, unknown: list[Path]) -> Any:
    return copy_of(value)


def _integer(form: str) -> Checker:
    limit, wanted = _INTEGER_LIMITS[form], form or "int64"

    def check_integer(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is int and -limit <= value < limit:
            return value
        word = json_word(value)
        raise Mismatch(f"number {value}" if word == "number" else word, path, wanted)

    return check_integer


def _check_int_or_string(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is str or (type(value) is int and -(2**31) <= value < 2**31):
        return value
    word = json_word(value)
    shown = f"number {value}" if word == "number" else word
    raise Malformed(f"json: cannot unmarshal {shown} into Go value of type int32")


def _check_quantity(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is not str and type(value) is not int and type(value) is not float:
        raise Malformed(quantity.WRONG_FORM)
    try:
        return quantity.canonical(value)
    except quantity.QuantityError as error:
        raise Malformed(str(error)) from error


def _check_bytes(value: Any, path: Path, unknown: list[Path]) -> Any:
    if type(value) is not str:
        raise Mismatch(json_word(value), path, "[]uint8")
    plain = value.replace("\n", "").replace("\r", "")  # Go's decoder skips line ends
    try:
        binascii.a2b_base64(plain.encode(), strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise Malformed(f"illegal base64 data at input byte {_bad_byte(plain)}") from error
    return plain


def _bad_byte(text: str) -> int:
    good = re.match(r"[A-Za-z0-9+/]*", text)
    end = good.end() if good else 0
    return end if end < len(text) else end - end % 4


def _time(form: str) -> Checker:
    layout = _LAYOUTS[form]
    pattern = "%Y-%m-%dT%H:%M:%S.%fZ" if form == "micro-time" else "%Y-%m-%dT%H:%M:%SZ"
    length = 27 if form == "micro-time" else 20  # of the canonical text

    def check_time(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is not str:
            word = json_word(value)
            raise Malformed(f"json: cannot unmarshal {word} into Go value of type string")
        try:
            moment = datetime.fromisoformat(value) if _SECONDS.fullmatch(value) else None
        except ValueError:
            moment = None
        if moment is None:
            raise Malformed(
                f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
            )
        if len(value) == length and value[-1] == "Z":
            return value
        return moment.astimezone(UTC).strftime(pattern)

    return check_time


_STRINGS: dict[str, Checker] = {
    "": _check_string,
    "byte": _check_bytes,
    "date-time": _time("date-time"),
    "micro-time": _time("micro-time"),
    "int-or-string": _check_int_or_string,
    "quantity": _check_quantity,
}
