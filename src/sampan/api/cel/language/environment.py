"""Environment: variables, functions, macros and types of an expression.

Job: gather libraries and variables into the tables that the parser and the checker look into.
Invariant: an environment never changes; `extended` makes another one.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sampan.api.cel.language import types
from sampan.api.cel.language.functions import Library, Overload
from sampan.api.cel.language.types import Type
from sampan.api.cel.language.values import Value

_TYPE_NAMES = (
    types.BOOL, types.INT, types.UINT, types.DOUBLE, types.STRING, types.BYTES, types.NULL,
    types.LIST, types.MAP, types.TYPE, types.TIMESTAMP, types.DURATION,
)  # fmt: skip


class Objects(Protocol):
    """What is known of object types."""

    def fields_of(self, name: str) -> Mapping[str, Type] | None:
        """The fields of a type, by the names that expressions use; None: there is no such type."""
        ...


class Environment:
    def __init__(
        self,
        variables: Mapping[str, Type],
        libraries: Sequence[Library],
        objects: Objects | None = None,
    ) -> None:
        self.variables = dict(variables)
        self._objects = objects
        self.functions: dict[str, list[Overload]] = {}
        self.constants: dict[str, tuple[Type, Value]] = {}
        self.macros: frozenset[str] = frozenset()
        self._gather(libraries)

    def extended(
        self, variables: Mapping[str, Type], objects: Objects | None = None
    ) -> "Environment":
        """With more variables; what the others were looked up in is shared."""
        made = object.__new__(Environment)
        made.variables = {**self.variables, **variables}
        made._objects = objects or self._objects
        made.functions, made.constants = self.functions, self.constants
        made.macros = self.macros
        return made

    def fields_of(self, name: str) -> Mapping[str, Type] | None:
        return None if self._objects is None else self._objects.fields_of(name)

    def _gather(self, libraries: Sequence[Library]) -> None:
        self._add_types(_TYPE_NAMES)
        for library in libraries:
            self.macros |= library.macros
            self._add_types(library.types)
            self.constants |= library.variables
            for overload in library.overloads:
                self.functions.setdefault(overload.function, []).append(overload)

    def _add_types(self, named: Sequence[Type]) -> None:
        for item in named:
            self.constants[item.name] = (types.type_of_type(item), item)
