"""`@dataclass` for the hundreds of small classes that a start of sampan defines.

Job: the same classes as the standard library's, far cheaper to define. The library writes and
    compiles six methods for every class while it is imported (half a millisecond each, a fifth of
    the whole start), and most are never called in that process. Here `__init__` is compiled for
    a class of which there are several instances (a tenth of a millisecond: of settings, which
    there are once, the fields are filled one by one); the others are closures over one attribute
    getter.
    The library itself (and `inspect` with it) is not imported: a command must start in no time.
Invariant: for `dataclasses.replace`, `fields` and `asdict` these are dataclasses like any other.
Owner: every module that has state of its own. Slots always; no `order`, `kw_only`, ClassVar.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import Field, field
else:
    field = None  # only named below, for the type checker

T = TypeVar("T")
_FIELDS = "__dataclass_fields__"  # the name under which the standard library looks for them
_DESCRIPTION = "__record__"
_NONE = object()  # no default
_COMPILED_AFTER = 8  # instances
_refuses = False  # that fields of frozen instances are assigned to


def refuse_changes() -> None:
    """Of frozen instances, for the classes that are defined from now on. Who assigns to a field is
    told so by mypy; that it is refused while it runs, too, is for tests: filling a slot past a
    `__setattr__` takes three times as long."""
    global _refuses
    _refuses = True


class _Item:
    """One field, as the class body says it."""

    __slots__ = ("annotation", "compare", "default", "factory", "init", "name", "repr", "source")

    def __init__(self, name: str, annotation: Any, value: Any) -> None:
        self.name, self.annotation, self.source = name, annotation, value
        self.default: Any = value
        self.factory: Any = _NONE
        self.init = self.repr = self.compare = True
        # Whoever calls `field` has imported the library; nobody else needs it for a start.
        library = sys.modules.get("dataclasses")
        if library is not None and isinstance(value, library.Field):
            absent = library.MISSING
            self.default = _NONE if value.default is absent else value.default
            self.factory = _NONE if value.default_factory is absent else value.default_factory
            self.init, self.repr, self.compare = value.init, value.repr, value.compare


Items = dict[str, _Item]


class _Description:
    """The fields of a class. What each is in detail, most starts need to know of few classes."""

    __slots__ = ("_base", "_items", "_own", "cls", "names", "own_names", "plain")

    names: tuple[str, ...]
    cls: type  # once it is there

    def __init__(self, own: "dict[str, tuple[Any, Any]]", base: "_Description | None") -> None:
        """`own`: annotation and value of each, as the class body says them."""
        self._own, self._base = own, base
        self._items: Items | None = None
        self.own_names = tuple(own)
        # Whoever calls `field` has imported the library; nobody else needs it for a start.
        library = sys.modules.get("dataclasses")
        special = None if library is None else library.Field
        self.plain = True
        for _, value in own.values():
            if value.__class__ is special:
                self.plain = False
                break
        if base is not None:
            self.own_names = tuple(name for name in own if name not in base.names)
            self.plain = self.plain and base.plain
        self.names = self.own_names if base is None else (*base.names, *self.own_names)

    @property
    def items(self) -> Items:
        if self._items is None:
            inherited = {} if self._base is None else self._base.items
            own = {name: _Item(name, *flags) for name, flags in self._own.items()}
            self._items = inherited | own
        return self._items

    def filled(self) -> "list[tuple[str, Any, Any]]":
        """What an instance is made of: names, defaults and factories."""
        if not self.plain:
            items = self.items.values()
            return [(item.name, item.default, item.factory) for item in items if item.init]
        defaults = {name: value for name, (_, value) in self._own.items()}
        if self._base is not None:
            defaults = {name: value for name, value, _ in self._base.filled()} | defaults
        return [(name, value, _NONE) for name, value in defaults.items()]

    def chosen(self, which: str) -> Sequence[str]:
        """Those with `init`, `repr` or `compare`."""
        if self.plain:
            return self.names
        return [name for name, item in self.items.items() if getattr(item, which)]


class _Fields:
    """What `dataclasses.fields` and its like ask a class for, made when they first do."""

    __slots__ = ("_described", "_made")

    def __init__(self, described: _Description) -> None:
        self._described = described
        self._made: dict[str, Field[Any]] | None = None

    def __get__(self, instance: Any, owner: type | None = None) -> "dict[str, Field[Any]]":
        if self._made is None:
            self._made = _library_fields(self._described.items)
        return self._made


@functools.cache
def _ordinary_field() -> Any:
    """The library's mark on a field that is one."""
    import dataclasses

    @dataclasses.dataclass
    class Sample:
        value: int

    return getattr(Sample, _FIELDS)["value"]._field_type


def _library_fields(items: Items) -> "dict[str, Field[Any]]":
    import dataclasses

    ordinary = _ordinary_field()
    found: dict[str, Any] = {}
    for name, item in items.items():
        own: Any = item.source
        if not isinstance(own, dataclasses.Field):
            own = dataclasses.field(default=dataclasses.MISSING if own is _NONE else own)
        own.name, own.type, own._field_type = name, item.annotation, ordinary
        found[name] = own
    return found


@dataclass_transform(field_specifiers=(field,))
def dataclass(
    *, frozen: bool = False, slots: bool = True, eq: bool = True
) -> Callable[[type[T]], type[T]]:
    """As `dataclasses.dataclass`; `slots` is there for the reader and always on."""
    assert slots
    return lambda cls: _record(cls, frozen, eq)


def _record(cls: type[T], frozen: bool, eq: bool) -> type[T]:
    body = dict(cls.__dict__)
    own = {name: (flags, body.pop(name, _NONE)) for name, flags in cls.__annotations__.items()}
    described = _Description(own, getattr(cls, _DESCRIPTION, None))
    body.pop("__dict__", None)  # of the class without slots
    body.pop("__weakref__", None)
    # All of it before the class is made: what is set on a class that is there costs more.
    body["__slots__"], body["__qualname__"] = described.own_names, cls.__qualname__
    body[_DESCRIPTION], body[_FIELDS] = described, _Fields(described)
    body["__match_args__"] = tuple(described.chosen("init"))
    body["__init__"] = _init_until_compiled(described, frozen)
    body.setdefault("__repr__", _repr(described))
    _add_equality(body, described, frozen, eq)
    if frozen and _refuses:
        body["__setattr__"], body["__delattr__"] = _refuse, _refuse
    if frozen:
        body["__getstate__"], body["__setstate__"] = _state, _set_state
    made: Any = type(cls)(cls.__name__, cls.__bases__, body)  # type: ignore[misc]  # a class like it
    described.cls = made
    return cast(type[T], made)


def _init_until_compiled(described: _Description, frozen: bool) -> Callable[..., None]:
    fill: Callable[[Any, tuple[Any, ...], dict[str, Any]], bool] | None = None
    left = _COMPILED_AFTER

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal fill, left
        if fill is None:
            fill = _filler(described.cls, described.filled())
        left -= 1
        if left >= 0 and fill(self, args, kwargs):
            return
        compiled = _compiled_init(described.cls, described.items, frozen)
        described.cls.__init__ = compiled  # type: ignore[misc]  # of a class
        compiled(self, *args, **kwargs)  # or it says what is wrong with them

    return init


def _filler(
    cls: type, fields: "list[tuple[str, Any, Any]]"
) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]:
    """What fills an instance as `_compiled_init` does; False: the arguments do not fit."""
    names = [name for name, _, _ in fields]
    completes, put = hasattr(cls, "__post_init__"), object.__setattr__

    def fill(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        if len(values) != len(args) + len(kwargs):
            return False  # one of them twice, or too many
        for name, default, factory in fields:
            if name in values:
                put(self, name, values.pop(name))
            elif factory is not _NONE:
                put(self, name, factory())
            elif default is not _NONE:
                put(self, name, default)
            else:
                return False
        if values:
            return False
        if completes:
            self.__post_init__()
        return True

    return fill


def _compiled_init(cls: type, known: Items, frozen: bool) -> Callable[..., None]:
    """A frozen instance is filled through its slots, past the `__setattr__` that refuses."""
    scope: dict[str, Any] = {"MISSING": _NONE}
    arguments, lines = ["self"], []
    for name, item in known.items():
        value = name
        if item.factory is not _NONE:
            scope[f"_make_{name}"] = item.factory
            value = f"_make_{name}() if {name} is MISSING else {name}"
            arguments.append(f"{name}=MISSING")
        elif item.default is not _NONE:
            scope[f"_default_{name}"] = item.default
            arguments.append(f"{name}=_default_{name}")
        elif item.init:
            arguments.append(name)
        if not item.init:
            continue
        scope[f"_set_{name}"] = getattr(cls, name).__set__
        past = frozen and _refuses
        lines.append(f"_set_{name}(self, {value})" if past else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines or ["pass"]), scope)
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def replace(instance: T, **changes: Any) -> T:
    """As `dataclasses.replace`, at a fifth of its price: for what every request and pod goes
    through."""
    cls = instance.__class__
    copy = _copies.get(cls)
    if copy is None:
        copy = _copies[cls] = _compiled_copy(cls)
    other = copy(instance)
    for name, value in changes.items():
        object.__setattr__(other, name, value)
    return cast(T, other)


_copies: dict[type, Callable[[Any], Any]] = {}


def _compiled_copy(cls: type) -> Callable[[Any], Any]:
    """Its fields are those of an instance that is there: no default is asked for."""
    assert not hasattr(cls, "__post_init__"), cls
    names = getattr(cls, _DESCRIPTION).names
    scope: dict[str, Any] = {"new": object.__new__, "cls": cls}
    scope |= {f"_set_{name}": getattr(cls, name).__set__ for name in names}
    fill = "_set_{0}(other, self.{0})" if _refuses else "other.{0} = self.{0}"
    lines = ["other = new(cls)", *(fill.format(name) for name in names), "return other"]
    exec("def copy(self):\n " + "\n ".join(lines), scope)
    copied: Callable[[Any], Any] = scope["copy"]
    return copied


def _getter(names: Sequence[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _add_equality(body: dict[str, Any], described: _Description, frozen: bool, eq: bool) -> None:
    if not eq:
        return
    values = _getter(described.chosen("compare"))

    def equal(self: Any, other: Any) -> Any:
        return (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    body.setdefault("__eq__", equal)
    if body.get("__hash__") is None:  # Python's own mark on a class that compares
        body["__hash__"] = (lambda self: hash(values(self))) if frozen else None


def _repr(described: _Description) -> Callable[[Any], str]:
    def represent(self: Any) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in described.chosen("repr"))
        return f"{self.__class__.__qualname__}({inner})"

    return represent


def _refuse(self: Any, name: str, *_: Any) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _DESCRIPTION).names]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _DESCRIPTION).names, state, strict=True):
        object.__setattr__(self, name, value)
