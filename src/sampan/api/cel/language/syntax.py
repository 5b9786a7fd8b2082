"""Syntax tree.

Job: the nodes that the parser makes, the checker types and the evaluator turns into closures.
Invariant: every node has a number of its own and the character that a complaint would point at.
"""

from typing import Any, Literal

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Constant:
    id: int
    at: int
    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    id: int
    at: int
    name: str
    absolute: bool = False  # `.name`: never a local variable


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, `operand.?field`, `has(operand.field)`."""

    id: int
    at: int
    operand: "Node"
    field: str
    test: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    id: int
    at: int
    function: str
    target: "Node | None"
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    id: int
    at: int
    elements: tuple["Node", ...]
    optional: frozenset[int] = frozenset()  # which are written with a `?`


@dataclass(frozen=True, slots=True)
class Entry:
    id: int
    key: "Node"
    value: "Node"
    optional: bool


@dataclass(frozen=True, slots=True)
class MapOf:
    id: int
    at: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Field:
    at: int
    name: str
    value: "Node"
    optional: bool


@dataclass(frozen=True, slots=True)
class Struct:
    id: int
    at: int
    name: str
    fields: tuple[Field, ...]


FoldKind = Literal[
    "all", "exists", "exists_one", "map", "filter", "transformMap", "transformMapEntry"
]


@dataclass(frozen=True, slots=True)
class Fold:
    """A macro that goes over a list or a map."""

    id: int
    at: int
    kind: FoldKind
    over: "Node"
    variables: tuple[str, ...]  # one, or index/key and value
    condition: "Node | None"
    result: "Node | None"


@dataclass(frozen=True, slots=True)
class Bind:
    """`cel.bind(name, value, body)`."""

    id: int
    at: int
    name: str
    value: "Node"
    body: "Node"


@dataclass(frozen=True, slots=True)
class OptionalMap:
    """`target.optMap(name, body)`, and optFlatMap, whose body is optional itself."""

    id: int
    at: int
    target: "Node"
    name: str
    body: "Node"
    flat: bool


Node = Constant | Name | Select | Call | ListOf | MapOf | Struct | Fold | Bind | OptionalMap


def dotted_name(node: Node) -> str | None:
    """`a.b.c`, where the node is nothing but names."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        before = dotted_name(node.operand)
        return None if before is None else f"{before}.{node.field}"
    return None


def root_of(node: Node) -> Name | None:
    while isinstance(node, Select):
        node = node.operand
    return node if isinstance(node, Name) else None
