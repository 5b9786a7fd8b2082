"""`@dataclass` for the hundreds of small classes that a start of sampan defines.

Job: the same classes as the standard library's, far cheaper to define. The library writes and
    compiles six methods for every class while it is imported (half a millisecond each, a fifth of
    the whole start), and most are never called in that process. Here `__init__` is compiled for
    the first instance; the others are closures over one attribute getter.
Invariant: for `dataclasses.replace`, `fields` and `asdict` these are dataclasses like any other.
Owner: every module that has state of its own. Slots always; no `order`, `kw_only`, ClassVar.
"""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")
Fields = dict[str, "Field[Any]"]
_FIELDS = "__dataclass_fields__"  # the name under which the standard library looks for them


@dataclasses.dataclass
class _Sample:
    value: int


_ORDINARY = getattr(_Sample, _FIELDS)["value"]._field_type


@dataclass_transform(field_specifiers=(field,))
def dataclass(
    *, frozen: bool = False, slots: bool = True, eq: bool = True
) -> Callable[[type[T]], type[T]]:
    """As `dataclasses.dataclass`; `slots` is there for the reader and always on."""
    assert slots
    return lambda cls: _record(cls, frozen, eq)


def _record(cls: type[T], frozen: bool, eq: bool) -> type[T]:
    inherited: Fields = dict(getattr(cls, _FIELDS, {}))
    own = _own_fields(cls)
    known = inherited | own
    body = {key: value for key, value in cls.__dict__.items() if key not in own}
    body.pop("__dict__", None)  # of the class without slots
    body.pop("__weakref__", None)
    body["__slots__"] = tuple(name for name in own if name not in inherited)
    body[_FIELDS] = known
    body["__match_args__"] = tuple(name for name, item in known.items() if item.init)
    body.setdefault("__repr__", _repr(known))
    _add_equality(body, known, frozen, eq)
    if frozen:
        body["__setattr__"], body["__delattr__"] = _refuse, _refuse
        body["__getstate__"], body["__setstate__"] = _state, _set_state
    made: Any = type(cls)(cls.__name__, cls.__bases__, body)  # type: ignore[misc]
    made.__qualname__ = cls.__qualname__
    _init_on_first_use(made, known, frozen)
    return cast(type[T], made)


def _own_fields(cls: type) -> Fields:
    found: Fields = {}
    for name, annotation in inspect.get_annotations(cls).items():
        value = cls.__dict__.get(name, MISSING)
        one: Field[Any] = value if isinstance(value, Field) else field(default=value)
        one.name, one.type = name, annotation
        one._field_type = _ORDINARY  # type: ignore[attr-defined]  # what `fields` asks for
        found[name] = one
    return found


def _init_on_first_use(cls: type, known: Fields, frozen: bool) -> None:
    def first(self: Any, *args: Any, **kwargs: Any) -> None:
        init = _compiled_init(cls, known, frozen)
        cls.__init__ = init  # type: ignore[misc]
        init(self, *args, **kwargs)

    cls.__init__ = first  # type: ignore[misc]


def _compiled_init(cls: type, known: Fields, frozen: bool) -> Callable[..., None]:
    """A frozen instance is filled through its slots, past the `__setattr__` that refuses."""
    scope: dict[str, Any] = {"MISSING": MISSING}
    arguments, lines = ["self"], []
    for name, item in known.items():
        value = name
        if item.default_factory is not MISSING:
            scope[f"_make_{name}"] = item.default_factory
            value = f"_make_{name}() if {name} is MISSING else {name}"
            arguments.append(f"{name}=MISSING")
        elif item.default is not MISSING:
            scope[f"_default_{name}"] = item.default
            arguments.append(f"{name}=_default_{name}")
        elif item.init:
            arguments.append(name)
        if not item.init:
            continue
        scope[f"_set_{name}"] = getattr(cls, name).__set__
        lines.append(f"_set_{name}(self, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines or ["pass"]), scope)
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _getter(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _add_equality(body: dict[str, Any], known: Fields, frozen: bool, eq: bool) -> None:
    if not eq:
        return
    values = _getter([name for name, item in known.items() if item.compare])

    def equal(self: Any, other: Any) -> Any:
        return (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    body.setdefault("__eq__", equal)
    if body.get("__hash__") is None:  # Python's own mark on a class that compares
        body["__hash__"] = (lambda self: hash(values(self))) if frozen else None


def _repr(known: Fields) -> Callable[[Any], str]:
    names = [name for name, item in known.items() if item.repr]

    def described(self: Any) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({inner})"

    return described


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _FIELDS)]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _FIELDS), state, strict=True):
        object.__setattr__(self, name, value)
