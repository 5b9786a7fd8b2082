"""What Go's decoder says of a body that does not fit its type.

Job: a definition and a value → the one error that Go reports. Pure; asked only of what was refused.
Invariant: as encoding/json, the first value of a wrong type is remembered and reading goes on; a
    type that reads itself (quantities, times, int-or-string) ends it at once, and its error counts.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sampan.api import features
from sampan.api.decode_scalars import (
    STRINGS,
    Malformed,
    Mismatch,
    SelfRead,
    check_bool,
    check_number,
    integer,
    json_word,
)
from sampan.api.schema.field_kinds import Type, short_name
from sampan.api.schema.message_table import Messages, inlined_message, load_messages
from sampan.core.files.packaged_data import packaged_data

FieldsOf = Callable[[str], Mapping[str, Type]]
TypeOf = Callable[[Type], str]
ReadAny = Callable[[Type, Any], Any]  # of a type that reads itself; raises Malformed


def go_field_types() -> Mapping[str, Mapping[str, str]]:
    """Definition → field → the name of its Go type, where it has one of its own."""
    return features.of_release(_read)


def _read(_release: features.Release) -> dict[str, dict[str, str]]:
    packages: dict[str, dict[str, str]] = packaged_data("go_types")["packages"]
    return {
        f"{package}.{name}": dict(field.split("=", 1) for field in fields.split())
        for package, types in packages.items()
        for name, fields in types.items()
    }


def element_of(wanted: str) -> str:
    """`v1.OperationType`, of `[]v1.OperationType`; nothing, where the name hides it."""
    if wanted.startswith("[]"):
        return wanted[2:]
    return wanted.partition("]")[2] if wanted.startswith("map[") else ""


class DecodeErrors:
    """Of one set of definitions. `type_of`: a type as Go names it, where it has no name."""

    def __init__(self, fields_of: FieldsOf, type_of: TypeOf, read_any: ReadAny) -> None:
        self._fields_of, self._type_of, self._read_any = fields_of, type_of, read_any

    def text(self, root: str, value: Any) -> str:
        """Empty where nothing is wrong."""
        reading = _Reading(self._fields_of, self._type_of, self._read_any)
        kind = Type("object", name=root)
        try:
            reading.value(kind, value, self._type_of(kind))
        except _Ended as end:
            return str(end)
        return reading.first


class _Ended(Exception):
    """A type that reads itself has refused its value."""


class _Reading:
    """One walk: where it is, and what was wrong first."""

    def __init__(self, fields_of: FieldsOf, type_of: TypeOf, read_any: ReadAny) -> None:
        self._fields_of, self._type_of, self._read_any = fields_of, type_of, read_any
        self._struct, self._words = "", ()  # type: str, tuple[str, ...]
        self._names, self._messages = go_field_types(), load_messages()
        self.first = ""

    def value(self, kind: Type, value: Any, wanted: str) -> None:
        if value is None:
            return
        if kind.shape == "object":
            self._object(kind, value, wanted)
        elif kind.shape in ("list", "map"):
            self._items(kind, value, wanted)
        elif kind.shape == "any":
            try:
                self._read_any(kind, value)
            except Malformed as problem:
                raise _Ended(str(problem)) from problem
        else:
            self._scalar(kind, value, wanted)

    def _object(self, kind: Type, value: Any, wanted: str) -> None:
        if type(value) is not dict:
            self._note(json_word(value), wanted)
            return
        fields, names = self._fields_of(kind.name), self._names.get(kind.name, {})
        before = self._struct, self._words
        for key, item in value.items():
            field = fields.get(key)
            if field is None:
                continue
            inlined = inlined_names(self._messages, kind.name, key)
            self._struct, self._words = short_name(kind.name), (*before[1], *inlined, key)
            self.value(field, item, names.get(key) or self._type_of(field))
            self._struct, self._words = before

    def _items(self, kind: Type, value: Any, wanted: str) -> None:
        is_list = kind.shape == "list"
        if type(value) is not (list if is_list else dict):
            self._note(json_word(value), wanted)
            return
        assert kind.element is not None, kind
        inner = element_of(wanted) or self._type_of(kind.element)
        items = list(value.values()) if isinstance(value, dict) else value
        for item in items:
            self.value(kind.element, item, inner)

    def _scalar(self, kind: Type, value: Any, wanted: str) -> None:
        if kind.shape == "integer":
            check = integer(kind.format)
        elif kind.shape == "string":
            check = STRINGS[kind.format]
        else:
            check = check_bool if kind.shape == "boolean" else check_number
        try:
            check(value, (), [])
        except SelfRead as problem:
            raise _Ended(self._said(problem.value, problem.wanted)) from problem
        except Mismatch as problem:
            self._note(problem.value, problem.wanted if kind.format == "byte" else wanted)
        except Malformed as problem:
            if kind.format != "byte":
                raise _Ended(str(problem)) from problem
            self.first = self.first or str(problem)

    def _note(self, value: str, wanted: str) -> None:
        self.first = self.first or self._said(value, wanted)

    def _said(self, value: str, wanted: str) -> str:
        into = f"struct field {self._struct}.{'.'.join(self._words)}" if self._words else "value"
        return f"json: cannot unmarshal {value} into Go {into} of type {wanted}"


def inlined_names(messages: Messages, message: str, key: str) -> tuple[str, ...]:
    """Through which embedded structs a field of a message is reached."""
    for token in messages.get(message, {}).values():
        if token.startswith("*"):
            inner = inlined_message(message, token)
            if any(own.rstrip("!?") == key for own in messages.get(inner, {}).values()):
                return (token[1:],)
            deeper = inlined_names(messages, inner, key)
            if deeper:
                return (token[1:], *deeper)
    return ()
