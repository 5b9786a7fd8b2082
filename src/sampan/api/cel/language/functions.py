"""Functions of the language: what they take, what they give, and what does it.

Job: how a library declares its functions; choosing the overload that fits the values.
Invariant: an overload is only called with values of the types that it declares.
"""

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TypeVar

from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.types import Type, is_dynamic, parse_type
from sampan.api.cel.language.values import Value, type_of
from sampan.core.bounded import FlushedMemo
from sampan.core.fast_dataclass import dataclass

Implementation = Callable[..., Value]
F = TypeVar("F", bound=Implementation)
Cost = Callable[..., int]  # of the arguments → steps beyond the call's own


@dataclass(frozen=True, slots=True)
class Overload:
    function: str
    member: bool
    arguments: tuple[Type, ...]  # the receiver first
    result: Type
    implementation: Implementation
    cost: Cost | int = 1


@dataclass(frozen=True, slots=True)
class Library:
    """Functions, macros and types that come together."""

    name: str
    overloads: list[Overload] = field(default_factory=list)
    macros: frozenset[str] = frozenset()
    types: tuple[Type, ...] = ()
    variables: dict[str, tuple[Type, Value]] = field(default_factory=dict)

    def function(
        self, name: str, *arguments: str, to: str, cost: Cost | int = 1
    ) -> Callable[[F], F]:
        """`name(arguments)`; the name may have dots."""
        return self._declare(name, False, arguments, to, cost)

    def member(
        self, receiver: str, name: str, *arguments: str, to: str, cost: Cost | int = 1
    ) -> Callable[[F], F]:
        """`receiver.name(arguments)`."""
        return self._declare(name, True, (receiver, *arguments), to, cost)

    def _declare(
        self, name: str, member: bool, arguments: Iterable[str], to: str, cost: Cost | int
    ) -> Callable[[F], F]:
        taken = tuple(parse_type(argument) for argument in arguments)

        def declare(implementation: F) -> F:
            made = Overload(name, member, taken, parse_type(to), implementation, cost)
            self.overloads.append(made)
            return implementation

        return declare


MOST_SHAPES = 64


class Dispatch:
    """Which of a function's overloads takes these values; remembered by their Python types."""

    def __init__(self, function: str, overloads: Iterable[Overload]) -> None:
        self.function = function
        self._overloads = tuple(overloads)
        self._known: FlushedMemo[tuple[type, ...], Overload] = FlushedMemo(MOST_SHAPES)

    def chosen(self, values: tuple[Value, ...]) -> Overload:
        shape = tuple(map(type, values))
        found = self._known.known.get(shape)
        if found is None:
            found = self._known.keep(shape, self._search(values))
        return found

    def _search(self, values: tuple[Value, ...]) -> Overload:
        types = [type_of(value) for value in values]
        for overload in self._overloads:
            if len(overload.arguments) == len(types) and all(map(_fits, overload.arguments, types)):
                return overload
        given = ", ".join(str(kind) for kind in types)
        raise EvaluationError(f"no such overload: {self.function}({given})")


def _fits(declared: Type, given: Type) -> bool:
    return declared.sort == "parameter" or is_dynamic(declared) or declared.name == given.name
