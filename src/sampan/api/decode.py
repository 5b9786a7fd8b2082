"""Decoding as Go does it: JSON data in, an object of a known type out.

Job: drop unknown fields and nulls, bring quantities, times and bytes to their one spelling, and say
    what does not fit, in upstream's words. Where a type's Go form is known, what comes out is what
    Go would write again: zeros that it leaves out are gone, what it always writes is there. Pure;
    the input is never changed.
Invariant: what was decoded decodes to itself, with nothing unknown.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sampan.api.decode_scalars import (
    CONVERTED,
    SCALARS,
    STRINGS,
    Checker,
    Malformed,
    Mismatch,
    Path,
    check_any,
    check_bool,
    check_number,
    check_omitted_string,
    check_string,
    converted_integer,
    integer,
    json_word,
    steps_of,
)
from sampan.api.objects import copy_of
from sampan.api.schema.decode_errors import DecodeErrors, element_of, go_field_types
from sampan.api.schema.field_kinds import Type, short_name
from sampan.core.bounded import FlushedMemo

FieldsOf = Callable[[str], Mapping[str, Type]]


class GoForm(NamedTuple):
    """How Go writes the fields of a type."""

    always: frozenset[str]  # in any case
    pointers: frozenset[str]  # scalars whose zero it tells from nothing
    lists: frozenset[str]  # whose emptiness it tells from nothing


GoFormOf = Callable[[str], GoForm | None]


# Scalars that are required and held by pointer: what nobody sent is nothing, and no zero.
_POINTERS = {"HTTPIngressPath": frozenset({"pathType"})}
# Formats of values that are no zero: Go holds them by pointer, or they say what they are.
_TIMES = ("date-time", "micro-time")
_OMITTED_TIME = "creationTimestamp"  # of metadata: the one moment whose zero Go leaves out
_NO_ZERO = frozenset({*_TIMES, "quantity", "int-or-string"})


class Decoder:
    """Compiles one checker per definition, when it is first met. `converts`: numbers become what is
    wanted, as where Go makes an object of maps instead of text: 1.0 becomes 1, and what is too
    large for its type loses its upper half."""

    def __init__(
        self, fields_of: FieldsOf, go_form_of: GoFormOf = lambda _name: None, converts: bool = False
    ) -> None:
        self._fields_of = fields_of
        self._go_form_of = go_form_of
        self._converts = converts
        self._structs: dict[str, Checker] = {}

    def struct(self, name: str) -> Checker:
        checker = self._structs.get(name)
        if checker is None:
            checker = self._structs[name] = self._compile(name)
        return checker

    def named_type(self, root: str, problem: Mismatch) -> str:
        """The Go type of the value, where it has a name of its own."""
        here: Type | None = Type("object", name=root)
        named = ""
        for key in steps_of(problem.path):
            if here is None:
                return ""
            if here.shape == "object":
                named = go_field_types().get(here.name, {}).get(str(key), "")
                here = self._fields_of(here.name).get(str(key))
            else:
                named, here = element_of(named), here.element
        return named

    def error_text(self, root: str, value: Any) -> str:
        """What Go says of a value that does not fit; empty where it does."""
        errors = DecodeErrors(self._fields_of, go_type, self._read_any)
        return errors.text(root, value)

    def _read_any(self, kind: Type, value: Any) -> Any:
        return self._checker(kind)(value, (), [])

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
            if key == _OMITTED_TIME:
                kept.discard(key)
            elif kind.shape in ("object", "any") or kind.format in _NO_ZERO:
                kept.add(key)
            elif kind.shape in ("list", "map") and key not in form.lists:
                kept.discard(key)  # empty is nothing: left out, or null where it is always written
            elif key not in kept and fields[key] is check_string:
                fields[key] = check_omitted_string
        nothing = _POINTERS.get(short_name(name), frozenset())
        zeros = [
            (key, (None, None) if key in nothing else self._zero(types[key]))
            for key in types
            if key in always
        ]
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
            return (converted_integer if self._converts else integer)(kind.format)
        if kind.shape == "string":
            return (CONVERTED if self._converts else STRINGS)[kind.format]
        if kind.shape == "any" and short_name(kind.name) in _SCHEMA_OR:
            return self._schema_or(kind.name)
        return {"number": check_number, "boolean": check_bool}.get(kind.shape, check_any)

    def _schema_or(self, name: str) -> Checker:
        """A schema inside of another, or what may stand in its place. As upstream, whose own code
        reads it: a field that it does not know is left out in silence, and errors begin anew."""
        root = f"{name.rpartition('.')[0]}.{_SCHEMA}"
        read, check = self._later(root), _SCHEMA_OR[short_name(name)]

        def check_schema(value: Any) -> Any:
            try:
                return read(value, (), [])
            except Mismatch as problem:
                raise Malformed(self.error_text(root, value)) from problem

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
            if check is check_string:
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
                if check is check_string and type(item) is str:
                    out[key] = item  # the commonest field by far, without a call
                else:
                    out[key] = check(item, (path, key), unknown)
        return out

    return check_struct


# A constant, or what makes one anew.
_Zero = tuple[Any, Callable[[], Any] | None]
_MOST_PLANS = 64  # of one type
_MOST_KEYS = 64  # of a value that is read by a plan: others hardly have the same


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
        self._known: FlushedMemo[tuple[str, ...], _Plan] = FlushedMemo(_MOST_PLANS)
        self.known = self._known.known

    def add(self, keys: tuple[str, ...]) -> _Plan:
        if len(keys) > _MOST_KEYS or not all(key in self.fields for key in keys):
            return (), None
        checks = {key: self._struct_of(key) or self.fields[key] for key in keys}
        scalars, others = [], []
        for key, check in checks.items():
            kind = SCALARS.get(check)
            if kind is None:
                others.append((key, check, key in self.kept))
            else:
                scalars.append((key, kind, key in self.kept))
        return self._known.keep(keys, (tuple(scalars), tuple(others)))


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
