"""Literal checks: a constant pattern, duration or timestamp that can only fail.

Job: find them before the expression runs, as Kubernetes' checks of the tree do.
"""

from collections.abc import Callable, Iterator

from sampan.api.cel.language.errors import EvaluationError, Issue
from sampan.api.cel.language.syntax import (
    Bind,
    Call,
    Constant,
    Fold,
    ListOf,
    MapOf,
    Node,
    OptionalMap,
    Select,
    Struct,
)
from sampan.api.cel.libraries.regex import NotRegex, compile_pattern
from sampan.api.cel.libraries.times import parse_duration, parse_timestamp

_CHECKS: dict[str, Callable[[str], object]] = {
    "matches": compile_pattern,
    "duration": parse_duration,
    "timestamp": parse_timestamp,
}


def literal_issues(root: Node) -> list[Issue]:
    found = []
    for node in _all(root):
        if not isinstance(node, Call) or node.function not in _CHECKS or not node.arguments:
            continue
        last = node.arguments[-1]
        if isinstance(last, Constant) and isinstance(last.value, str):
            try:
                _CHECKS[node.function](last.value)
            except (NotRegex, EvaluationError):
                found.append(Issue(last.at, f"invalid {node.function} argument"))
    return found


def _all(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_inside(node))


def _inside(node: Node) -> list[Node]:
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*node.arguments, *([] if node.target is None else [node.target])]
        case ListOf():
            return list(node.elements)
        case MapOf():
            return [item for entry in node.entries for item in (entry.key, entry.value)]
        case Struct():
            return [field.value for field in node.fields]
        case Fold():
            parts = (node.over, node.condition, node.result)
            return [part for part in parts if part is not None]
        case Bind():
            return [node.value, node.body]
        case OptionalMap():
            return [node.target, node.body]
        case _:
            return []
