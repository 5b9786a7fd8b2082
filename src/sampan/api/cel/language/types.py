"""The types of CEL, and when a value of one may stand where another is asked for.

Job: type values, their texts, assignability with type parameters.
Invariant: `dyn` fits everywhere and everything fits it: then the evaluation decides.
"""

import functools
import re
from typing import Literal

from sampan.core.fast_dataclass import dataclass

Sort = Literal["basic", "parameter", "object", "opaque"]


@dataclass(frozen=True, slots=True)
class Type:
    """Also a value of the language: `type(1) == int`."""

    name: str
    parameters: tuple["Type", ...] = ()
    sort: Sort = "basic"

    def __str__(self) -> str:
        shown = _SHOWN.get(self.name, self.name)
        if not self.parameters:
            return shown
        return f"{shown}({', '.join(str(item) for item in self.parameters)})"


_SHOWN = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "null_type": "null",
}

DYN, NULL, BOOL, INT, UINT = (Type(item) for item in ("dyn", "null_type", "bool", "int", "uint"))
DOUBLE, STRING, BYTES, ERROR = (Type(item) for item in ("double", "string", "bytes", "!error!"))
TIMESTAMP, DURATION = Type("google.protobuf.Timestamp"), Type("google.protobuf.Duration")
LIST, MAP, TYPE = Type("list"), Type("map"), Type("type")
OPTIONAL = Type("optional_type", sort="opaque")

_WORDS = {
    item.name: item
    for item in (DYN, NULL, BOOL, INT, UINT, DOUBLE, STRING, BYTES, LIST, MAP, TYPE, OPTIONAL)
} | {"timestamp": TIMESTAMP, "duration": DURATION, "null": NULL, "optional": OPTIONAL}


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,), "opaque")


def type_of_type(of: Type) -> Type:
    return Type("type", (of,))


def object_type(name: str) -> Type:
    return Type(name, sort="object")


def opaque_type(name: str) -> Type:
    return Type(name, sort="opaque")


def parameter(name: str) -> Type:
    return Type(name, sort="parameter")


@functools.lru_cache(maxsize=512)
def parse_type(text: str) -> Type:
    """`map(K, list(string))`: how libraries write types. One capital letter is a parameter."""
    words = re.findall(r"[\w.!]+|[(),]", text)
    found, rest = _parse(words)
    assert not rest, text
    return found


def _parse(words: list[str]) -> tuple[Type, list[str]]:
    name, rest = words[0], words[1:]
    parameters: list[Type] = []
    if rest and rest[0] == "(":
        while rest[0] != ")":
            one, rest = _parse(rest[1:])
            parameters.append(one)
        rest = rest[1:]
    if len(name) == 1 and name.isupper():
        return parameter(name), rest
    known = _WORDS.get(name, opaque_type(name))
    return Type(known.name, tuple(parameters), known.sort), rest


def is_dynamic(one: Type) -> bool:
    return one.name in ("dyn", "!error!") and one.sort == "basic"


class Substitution:
    """What the type parameters of one expression stand for, as far as it is known."""

    def __init__(self, known: dict[str, Type] | None = None) -> None:
        self._known = dict(known or {})

    def copy(self) -> "Substitution":
        return Substitution(self._known)

    def adopt(self, other: "Substitution") -> None:
        self._known = other._known

    def resolved(self, one: Type, free: Type | None = None) -> Type:
        """With every known parameter replaced; the unknown ones by `free`, if given."""
        if one.sort == "parameter":
            found = self._known.get(one.name)
            if found is None:
                return one if free is None else free
            return self.resolved(found, free)
        if not one.parameters:
            return one
        inner = tuple(self.resolved(each, free) for each in one.parameters)
        return Type(one.name, inner, one.sort)

    def assign(self, wanted: Type, given: Type) -> bool:
        """Whether `given` may stand where `wanted` is asked for; binds what it learns."""
        trial = self.copy()
        if not trial._assign(wanted, given):
            return False
        self.adopt(trial)
        return True

    def assign_all(self, wanted: tuple[Type, ...], given: tuple[Type, ...]) -> bool:
        if len(wanted) != len(given):
            return False
        trial = self.copy()
        if not all(trial._assign(item, other) for item, other in zip(wanted, given, strict=True)):
            return False
        self.adopt(trial)
        return True

    def _assign(self, wanted: Type, given: Type) -> bool:
        if wanted == given:
            return True
        if given.sort == "parameter":
            return self._substitute(given, wanted)
        if wanted.sort == "parameter":
            return self._substitute(wanted, given)
        if is_dynamic(wanted) or is_dynamic(given):
            return True
        if NULL in (wanted, given):
            return _may_be_null(given if wanted == NULL else wanted)
        if wanted.name != given.name:
            return False
        if not wanted.parameters or not given.parameters:
            return True
        pairs = zip(wanted.parameters, given.parameters, strict=True)
        return all(self._assign(pair, other) for pair, other in pairs)

    def _substitute(self, name: Type, other: Type) -> bool:
        """A parameter that stands for something already comes to stand for the more general one."""
        known = self._known.get(name.name)
        if known is None:
            other = self._shallow(other)
            return other == name or self._bind(name, other)
        if not self._assign(known, other):
            return False
        if _is_as_general(self.resolved(other), self.resolved(known)):
            self._bind(name, other)  # unless it holds the parameter itself
        return True

    def _shallow(self, one: Type) -> Type:
        while one.sort == "parameter" and one.name in self._known:
            one = self._known[one.name]
        return one

    def _bind(self, name: Type, to: Type) -> bool:
        if self._occurs(name, to):
            return False
        self._known[name.name] = to
        return True

    def _occurs(self, name: Type, inside: Type) -> bool:
        inside = self._shallow(inside)
        return inside == name or any(self._occurs(name, item) for item in inside.parameters)


def _may_be_null(one: Type) -> bool:
    return one.sort in ("object", "opaque") or one in (TIMESTAMP, DURATION)


def _is_as_general(one: Type, other: Type) -> bool:
    """Whether everything that fits `other` fits `one`."""
    if is_dynamic(one) or one.sort == "parameter":
        return True
    if is_dynamic(other) or other.sort == "parameter" or one.name != other.name:
        return False
    if len(one.parameters) != len(other.parameters):
        return not one.parameters
    return all(map(_is_as_general, one.parameters, other.parameters))
