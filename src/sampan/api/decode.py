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
        names = {key: item.name for key, item in types.items() if item.shape == "object"}
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
        zeros = [(key, self._zero(types[key])) for key in types if key in always]
        plans = _Plans(fields, lambda key: self.struct(names[key]) if key in names else None, kept)
        return _go_struct(go_type(Type("object", name=name)), plans, zeros)

    def _zero(self, kind: Type) -> "_Zero":
        """What Go writes for a field that nobody has set."""
        if kind.shape == "object":
            check = self._later(kind.name)
            return None, lambda: check({}, (), [])
        is_null = kind.shape in ("list", "map", "any") or kind.format in _TIMES
        return (None if is_null else zero_of(kind)), None

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
        element = kind.element
        assert element is not None, kind
        wanted, zero = go_type(kind), zero_of(element)
        check = self._checker(element)
        is_struct = element.shape == "object"

        def check_list(value: Any, path: Path, unknown: list[Path]) -> Any:
            nonlocal check, is_struct
            if type(value) is not list:
                raise Mismatch(json_word(value), path, wanted)
            if is_struct:  # known by now: without the detour of a reference
                check, is_struct = self.struct(element.name), False
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
            if check is _check_string:
                for item in value.values():
                    if type(item) is not str:
                        break
                else:
                    return value.copy()
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


# A constant, or what makes one anew.
_Zero = tuple[Any, Callable[[], Any] | None]
_MOST_PLANS = 64  # of one type
_MOST_KEYS = 64  # of a value that is read by a plan: others hardly have the same
_MOST_TEXTS, _MOST_LETTERS = 1024, 40  # whose one spelling is remembered


# How a value with these fields is read: scalars with their type and whether their zero is written;
# and the others with their checkers, None where some field is not known.
_Plan = tuple[
    tuple[tuple[str, type, bool], ...], tuple[tuple[str, Checker, bool], ...] | None
]  # fmt: skip


class _Plans:
    """Of one type. Most of its values have the same fields: what is to be done with these is worked
    out once. `kept`: whose zero is written."""

    def __init__(
        self, fields: dict[str, Checker], struct_of: Callable[[str], Checker | None], kept: set[str]
    ) -> None:
        self.fields, self.kept = fields, frozenset(kept)
        self._struct_of = struct_of
        self.known: dict[tuple[str, ...], _Plan] = {}

    def add(self, keys: tuple[str, ...]) -> _Plan:
        if len(keys) > _MOST_KEYS or not all(key in self.fields for key in keys):
            return (), None
        checks = {key: self._struct_of(key) or self.fields[key] for key in keys}
        scalars, others = [], []
        for key, check in checks.items():
            kind = _SCALARS.get(check)
            if kind is None:
                others.append((key, check, key in self.kept))
            else:
                scalars.append((key, kind, key in self.kept))
        if len(self.known) >= _MOST_PLANS:
            self.known.clear()
        plan = self.known[keys] = tuple(scalars), tuple(others)
        return plan


def _go_struct(wanted: str, plans: _Plans, zeros: list[tuple[str, _Zero]]) -> Checker:
    """`zeros`: what is written where nothing was sent."""
    find, kept, known = plans.fields.get, plans.kept, plans.known

    def check_struct(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is not dict:
            raise Mismatch(json_word(value), path, wanted)
        keys = (*value,)
        try:
            scalars, others = known[keys]
        except KeyError:
            scalars, others = plans.add(keys)
        for key, kind, is_kept in scalars:
            item = value[key]
            if type(item) is not kind or not (item or is_kept):
                others = None
                break
        if others is None:
            out = check_each(value, path, unknown)
        else:
            out = value.copy()
            for key, check, is_kept in others:
                item = value[key]
                found = None if item is None else check(item, (path, key), unknown)
                if found or (is_kept and item is not None):
                    out[key] = found
                else:
                    del out[key]
        for key, (zero, fresh) in zeros:
            if key not in out:
                out[key] = zero if fresh is None else fresh()
        return out

    def check_each(value: Any, path: Path, unknown: list[Path]) -> Any:
        out = {}
        for key, item in value.items():
            check = find(key)
            if check is None:
                unknown.append((path, key))
            elif item is not None:
                found = check(item, (path, key), unknown)
                if found or key in kept:
                    out[key] = found
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


def _quantity() -> Checker:
    known: dict[str, str] = {}

    def check_quantity(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is not str and type(value) is not int and type(value) is not float:
            raise Malformed(quantity.WRONG_FORM)
        try:
            return known[value]  # type: ignore[index]  # a number is in no table of texts
        except KeyError:
            pass
        try:
            found = quantity.canonical(value)
        except quantity.QuantityError as error:
            raise Malformed(str(error)) from error
        if type(value) is str and len(value) <= _MOST_LETTERS:
            _note(known, value, found)
        return found

    return check_quantity


def _note(known: dict[str, str], value: str, found: str) -> None:
    """The one spelling of a text, which others are going to have too."""
    if len(known) >= _MOST_TEXTS:
        known.clear()
    known[value] = found


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
    known: dict[str, str] = {}  # moments of this second come again and again

    def check_time(value: Any, path: Path, unknown: list[Path]) -> Any:
        if type(value) is not str:
            word = json_word(value)
            raise Malformed(f"json: cannot unmarshal {word} into Go value of type string")
        try:
            return known[value]
        except KeyError:
            pass
        try:
            moment = datetime.fromisoformat(value) if _SECONDS.fullmatch(value) else None
        except ValueError:
            moment = None
        if moment is None:
            raise Malformed(
                f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
            )
        is_canonical = len(value) == length and value[-1] == "Z"
        found = value if is_canonical else moment.astimezone(UTC).strftime(pattern)
        if len(value) <= _MOST_LETTERS:
            _note(known, value, found)
        return found

    return check_time


_SCALARS: dict[Checker, type] = {
    _check_string: str,
    _check_omitted_string: str,
    _check_bool: bool,
}
_STRINGS: dict[str, Checker] = {
    "": _check_string,
    "byte": _check_bytes,
    "date-time": _time("date-time"),
    "micro-time": _time("micro-time"),
    "int-or-string": _check_int_or_string,
    "quantity": _quantity(),
}
