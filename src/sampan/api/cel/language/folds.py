"""The macros that go over lists and maps.

Job: all, exists, exists_one, map, filter and the transforms, with one variable or two.
Invariant: `all` and `exists` look on after an error, for an answer that makes it not matter.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from sampan.api.cel.language.errors import EvaluationError, no_overload
from sampan.api.cel.language.syntax import FoldKind
from sampan.api.cel.language.values import Value, keys_of, map_key, shown_key


class Frame(Protocol):
    locals: list[Value]

    def charge(self, steps: int) -> None: ...


Closure = Callable[[Any], Value]
Slots = tuple[int, ...]


def fold(
    kind: FoldKind, over: Closure, slots: Slots, condition: Closure | None, result: Closure | None
) -> Closure:
    bound = _turns_over(over, slots)
    if kind in ("all", "exists"):
        assert condition is not None
        return _quantifier(bound, condition, kind == "exists")
    if kind == "exists_one":
        assert condition is not None
        return _exactly_one(bound, condition)
    if kind == "filter":
        assert condition is not None
        return _filter(bound, condition, slots[0])
    assert result is not None
    if kind == "map":
        return _mapper(bound, condition, result)
    return _entries(bound, condition, result, slots[0], kind == "transformMapEntry")


def _turns_over(over: Closure, slots: Slots) -> Callable[[Any], Iterable[None]]:
    """One turn for each item, with the variables set."""

    def turns(frame: Frame) -> Iterable[None]:
        container = over(frame)
        scope = frame.locals
        if len(slots) == 1:
            slot = slots[0]
            for scope[slot] in _items(container):
                frame.charge(1)
                yield
            return
        key, value = slots
        for scope[key], scope[value] in _pairs(container):
            frame.charge(1)
            yield

    return turns


def _items(container: Value) -> Iterable[Value]:
    if isinstance(container, list | tuple):
        return container
    if isinstance(container, Mapping):
        return keys_of(container)
    raise no_overload()


def _pairs(container: Value) -> Iterable[tuple[Value, Value]]:
    if isinstance(container, list | tuple):
        return enumerate(container)
    if isinstance(container, Mapping):
        return [(shown_key(key), value) for key, value in container.items()]
    raise no_overload()


def _truth(value: Value) -> bool:
    if value is not True and value is not False:
        raise no_overload()
    return bool(value)


def _quantifier(
    bound: Callable[[Any], Iterable[None]], condition: Closure, decisive: bool
) -> Closure:
    def run(frame: Frame) -> bool:
        trouble: EvaluationError | None = None
        for _ in bound(frame):
            try:
                if _truth(condition(frame)) is decisive:
                    return decisive
            except EvaluationError as error:
                trouble = trouble or error
        if trouble is not None:
            raise trouble
        return not decisive

    return run


def _exactly_one(bound: Callable[[Any], Iterable[None]], condition: Closure) -> Closure:
    return lambda frame: sum(_truth(condition(frame)) for _ in bound(frame)) == 1


def _filter(bound: Callable[[Any], Iterable[None]], condition: Closure, slot: int) -> Closure:
    return lambda frame: [frame.locals[slot] for _ in bound(frame) if _truth(condition(frame))]


def _mapper(
    bound: Callable[[Any], Iterable[None]], condition: Closure | None, result: Closure
) -> Closure:
    if condition is None:
        return lambda frame: [result(frame) for _ in bound(frame)]
    return lambda frame: [result(frame) for _ in bound(frame) if _truth(condition(frame))]


def _entries(
    bound: Callable[[Any], Iterable[None]],
    condition: Closure | None,
    result: Closure,
    slot: int,
    whole: bool,
) -> Closure:
    """transformMap keeps the key; transformMapEntry makes a map of one entry each time."""

    def run(frame: Frame) -> dict[Value, Value]:
        found: dict[Value, Value] = {}
        for _ in bound(frame):
            if condition is not None and not _truth(condition(frame)):
                continue
            made = result(frame)
            if whole and not isinstance(made, Mapping):
                raise no_overload()
            new = made.items() if whole else [(map_key(frame.locals[slot]), made)]
            for key, value in new:
                if key in found:
                    shown = shown_key(key)
                    raise EvaluationError(f"insert failed: key {shown} already exists")
                found[key] = value
        return found

    return run
