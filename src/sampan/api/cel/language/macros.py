"""Macros: has, all, exists, map, filter, bind, optMap and their like.

Job: one call, as read → the node it stands for, or None where it is a call after all.
Invariant: only a macro that the environment knows is expanded.
"""

from collections.abc import Iterator
from typing import get_args

from sampan.api.cel.language.lexer import Unreadable
from sampan.api.cel.language.syntax import (
    Bind,
    Fold,
    FoldKind,
    Name,
    Node,
    OptionalMap,
    Select,
    dotted_name,
)

STANDARD = frozenset({"has", "one"})  # one: of one variable
TWO_VARIABLES = frozenset({"two"})
BINDINGS = frozenset({"bind"})
OPTIONALS = frozenset({"optional"})

_ONE = {"all": 2, "exists": 2, "exists_one": 2, "existsOne": 2, "filter": 2}
_TWO = {"all": 3, "exists": 3, "exists_one": 3, "existsOne": 3}
_TRANSFORMS: dict[str, FoldKind] = {
    "transformList": "map",
    "transformMap": "transformMap",
    "transformMapEntry": "transformMapEntry",
}
_KINDS: dict[str, FoldKind] = {argument: argument for argument in get_args(FoldKind)} | {
    "existsOne": "exists_one"
}


def expanded_function(
    known: frozenset[str],
    ids: Iterator[int],
    at: int,
    name: str,
    arguments: tuple[Node, ...],
) -> Node | None:
    if name != "has" or len(arguments) != 1 or "has" not in known:
        return None
    asked = arguments[0]
    if not isinstance(asked, Select) or asked.test:
        raise Unreadable(at, "invalid argument to has() macro")
    return Select(next(ids), asked.at, asked.operand, asked.field, True, asked.optional)


def expanded_member(
    known: frozenset[str],
    ids: Iterator[int],
    at: int,
    target: Node,
    name: str,
    arguments: tuple[Node, ...],
) -> Node | None:
    count = len(arguments)
    if name == "bind" and count == 3 and "bind" in known and dotted_name(target) == "cel":
        variable = _variable(arguments[0], "cel.bind() variable names must be simple identifiers")
        return Bind(next(ids), at, variable, arguments[1], arguments[2])
    if name in ("optMap", "optFlatMap") and count == 2 and "optional" in known:
        words = f"{name}() variable name must be a simple identifier"
        variable = _variable(arguments[0], words)
        return OptionalMap(next(ids), at, target, variable, arguments[1], name == "optFlatMap")
    if "one" in known:
        found = _one_variable(next(ids), at, target, name, arguments)
        if found is not None:
            return found
    return _two_variables(next(ids), at, target, name, arguments) if "two" in known else None


def _one_variable(
    number: int, at: int, target: Node, name: str, arguments: tuple[Node, ...]
) -> Fold | None:
    count = len(arguments)
    if name == "map" and count in (2, 3):
        variables = (_variable(arguments[0], "argument is not an identifier"),)
        condition = arguments[1] if count == 3 else None
        return Fold(number, at, "map", target, variables, condition, arguments[-1])
    if _ONE.get(name) == count:
        variables = (_variable(arguments[0], "argument must be a simple name"),)
        return Fold(number, at, _KINDS[name], target, variables, arguments[1], None)
    return None


def _two_variables(
    number: int, at: int, target: Node, name: str, arguments: tuple[Node, ...]
) -> Fold | None:
    count = len(arguments)
    transform = name in _TRANSFORMS and count in (3, 4)
    if not transform and _TWO.get(name) != count:
        return None
    words = "argument must be a simple name"
    variables = (_variable(arguments[0], words), _variable(arguments[1], words))
    if variables[0] == variables[1]:
        raise Unreadable(arguments[1].at, f"duplicate variable name: {variables[0]}")
    if transform:
        condition = arguments[2] if count == 4 else None
        return Fold(number, at, _TRANSFORMS[name], target, variables, condition, arguments[-1])
    return Fold(number, at, _KINDS[name], target, variables, arguments[2], None)


def _variable(node: Node, complaint: str) -> str:
    if not isinstance(node, Name) or node.absolute:
        raise Unreadable(node.at, complaint)
    return node.name
