"""Cost estimator: the worst-case cost of an expression, before it runs.

Job: go through a checked tree as cel-go's estimator does: what each node costs with the largest
    values that it may meet, and how large its own value may become.
Invariant: a size that nobody bounded is the largest there is, so that what depends on it is refused
    rather than tried.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sampan.api.cel.language.checker import Checked
from sampan.api.cel.language.cost import (
    LIST_COST,
    MAP_COST,
    REGEX_FACTOR,
    STRING_FACTOR,
    STRUCT_COST,
)
from sampan.api.cel.language.functions import Overload
from sampan.api.cel.language.sizes import EMPTY, SCALAR, UNKNOWN, Size, capped, priced
from sampan.api.cel.language.syntax import (
    Bind,
    Call,
    Constant,
    Fold,
    ListOf,
    MapOf,
    Name,
    Node,
    OptionalMap,
    Select,
    Struct,
    dotted_name,
)
from sampan.api.cel.language.types import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    TIMESTAMP,
    UINT,
    Type,
)
from sampan.core.fast_dataclass import dataclass

# From a variable to a value: names of fields, `@items`, `@keys`, `@values`; empty: not known.
Path = tuple[str, ...]
# How large the value at a path may be; None: there is no such value.
SizeAt = Callable[[Path], Size | None]


@dataclass(frozen=True, slots=True)
class Operand:
    """What a call is given."""

    type: Type
    path: Path
    size: Size  # what is known of it, or anything
    value: Any = None  # of a literal


@dataclass(frozen=True, slots=True)
class CallEstimate:
    cost: int
    size: Size | None = None  # of the result


# (receiver, arguments, sizes of values) → None where the function has no estimate of its own
CallEstimator = Callable[[Operand | None, Sequence[Operand], SizeAt], CallEstimate | None]


@dataclass(frozen=True, slots=True)
class _Entry:
    """Of a list or map: how large its keys and values may be."""

    key: Size
    value: Size

    def union(self, other: "_Entry | None") -> "_Entry | None":
        if other is None:
            return None
        return _Entry(self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Local:
    path: Path
    size: Size | None
    entry: _Entry | None = None


_SCALARS = frozenset({BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT})
_NOTHING = _Entry(SCALAR, EMPTY)  # the items of `[]`
# What every turn of a macro costs beside its condition and result, as cel-go expands it.
_TURNS = {
    "all": 3, "exists": 4, "exists_one": 2, "map": 12, "filter": 13,
    "transformMap": 3, "transformMapEntry": 2,
}  # fmt: skip
_TEXTUAL = ("string", "bytes")
_COMPARISONS = ("_<_", "_<=_", "_>_", "_>=_")


def estimated_cost(
    checked: Checked, size_at: SizeAt, functions: Mapping[str, CallEstimator]
) -> int:
    return _Estimator(checked, size_at, functions).cost(checked.root)


class _Estimator:
    def __init__(
        self, checked: Checked, size_at: SizeAt, functions: Mapping[str, CallEstimator]
    ) -> None:
        self._checked, self._size_at, self._functions = checked, size_at, functions
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entry] = {}
        self._locals: list[dict[str, _Local]] = []

    def cost(self, node: Node) -> int:
        """Also remembers its path and size; children come before their parents."""
        match node:
            case Constant():
                return 0
            case Name():
                return self._name(node.id, node.name)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Struct():
                return STRUCT_COST + sum(self.cost(item.value) for item in node.fields)
            case Fold():
                return self._fold(node)
            case Bind():
                return self._bind(node)
            case OptionalMap():
                return self._optional_map(node)

    # Names, paths and sizes

    def _local(self, name: str) -> _Local | None:
        return next((scope[name] for scope in reversed(self._locals) if name in scope), None)

    def _name(self, number: int, name: str) -> int:
        local = self._local(name)
        self._paths[number] = (name,) if local is None else local.path
        return 1

    def _select(self, node: Select) -> int:
        if node.id in self._checked.references:
            return self._name(node.id, dotted_name(node) or "")
        cost = self.cost(node.operand)
        if node.test:
            return cost  # upstream keeps presence free of charge
        if node.optional:
            return cost + 1
        self._paths[node.id] = (*self._path(node.operand), node.field)
        operand = self._type(node.operand)
        charged = operand.name == "map" or operand.sort in ("object", "parameter")
        return cost + charged

    def _type(self, node: Node) -> Type:
        return self._checked.types[node.id]

    def _path(self, node: Node) -> Path:
        return self._paths.get(node.id, ())

    def _size(self, node: Node) -> Size | None:
        known = self._sizes.get(node.id) or _literal_size(node) or self._size_at(self._path(node))
        if known is not None:
            return known
        if _is_scalar(self._type(node)):
            return SCALAR
        local = self._local(node.name) if isinstance(node, Name) else None
        return None if local is None else local.size

    def _size_or_unknown(self, node: Node) -> Size:
        return self._size(node) or UNKNOWN

    def _entry(self, node: Node) -> _Entry | None:
        found = self._entries.get(node.id)
        if found is None and isinstance(node, Name):
            local = self._local(node.name)
            found = None if local is None else local.entry
        return found

    def _keep(self, node: Node, size: Size | None, entry: _Entry | None = None) -> None:
        if size is not None:
            self._sizes[node.id] = size
        if entry is not None:
            self._entries[node.id] = entry

    # Literals

    def _list(self, node: ListOf) -> int:
        cost = LIST_COST + sum(self.cost(item) for item in node.elements)
        sizes = [self._size_or_unknown(item) for item in node.elements]
        self._keep(node, None, _Entry(SCALAR, _hull(sizes)))
        return cost

    def _map(self, node: MapOf) -> int:
        cost = MAP_COST
        for entry in node.entries:
            cost += self.cost(entry.key) + self.cost(entry.value)
        keys = _hull([self._size_or_unknown(entry.key) for entry in node.entries])
        values = _hull([self._size_or_unknown(entry.value) for entry in node.entries])
        self._keep(node, None, _Entry(keys, values))
        return cost

    # Calls

    def _call(self, node: Call) -> int:
        if node.function in ("_&&_", "_||_"):
            return sum(self.cost(argument) for argument in node.arguments)
        if node.function == "_?_:_":
            return self._conditional(node)
        plain = node.target is None or node.id in self._checked.plain
        costs = sum(self.cost(argument) for argument in node.arguments)
        target = None if plain or node.target is None else node.target
        if target is not None:
            costs += self.cost(target)
        if node.function == "dyn":
            self._keep(node, self._size(node.arguments[0]), self._entry(node.arguments[0]))
            return capped(costs + 1)
        return capped(costs + self._called(node, target))

    def _called(self, node: Call, target: Node | None) -> int:
        receiver = None if target is None else self._operand(target)
        given = [self._operand(argument) for argument in node.arguments]
        name = node.function
        if node.id in self._checked.plain:
            name = f"{dotted_name(node.target) if node.target else ''}.{name}"
        special = self._functions.get(name)
        found = None if special is None else special(receiver, given, self._size_at)
        cost, size = 0, None
        for overload in self._checked.overloads[node.id]:
            estimate = found or self._standard(overload, receiver, given)
            cost = max(cost, estimate.cost)
            if estimate.size is not None:
                size = estimate.size if size is None else size.union(estimate.size)
            if name == "_[_]":
                size = self._indexed(node, overload)
        if name == "_+_":
            self._join_entries(node)
        self._keep(node, size or self._size(node))
        return cost

    def _operand(self, node: Node) -> Operand:
        value = node.value if isinstance(node, Constant) else None
        return Operand(self._type(node), self._path(node), self._size_or_unknown(node), value)

    def _indexed(self, node: Call, overload: Overload) -> Size | None:
        container = node.arguments[0]
        step = "@items" if overload.arguments[0].name == "list" else "@values"
        self._paths[node.id] = (*self._path(container), step)
        entry = self._entry(container)
        return None if entry is None else entry.value

    def _join_entries(self, node: Call) -> None:
        first, second = (self._entry(argument) for argument in node.arguments)
        self._keep(node, None, None if first is None else first.union(second))

    def _conditional(self, node: Call) -> int:
        _, yes, no = node.arguments
        costs = [self.cost(part) for part in node.arguments]
        size = self._size_or_unknown(yes).union(self._size_or_unknown(no))
        entry = self._entry(yes)
        self._keep(node, size, None if entry is None else entry.union(self._entry(no)))
        return capped(costs[0] + max(costs[1:]))

    def _standard(
        self, overload: Overload, receiver: Operand | None, given: Sequence[Operand]
    ) -> CallEstimate:
        """What the language itself says of its functions."""
        name, first = overload.function, overload.arguments[:1]
        kind = first[0].name if first else ""
        if name in ("_==_", "_!=_") or (name in _COMPARISONS and kind in _TEXTUAL):
            return CallEstimate(priced(min(given[0].size.most, given[1].size.most), STRING_FACTOR))
        if name == "_+_" and kind in (*_TEXTUAL, "list"):
            size = given[0].size.plus(given[1].size)
            return CallEstimate(1 if kind == "list" else size.cost(STRING_FACTOR), size)
        if name == "@in" and overload.arguments[1].name == "list":
            return CallEstimate(given[1].size.cost())
        if name == "bytes" and kind == "string":
            size = given[0].size
            return CallEstimate(size.cost(STRING_FACTOR), Size(size.least, capped(size.most * 4)))
        if name == "string" and kind == "bytes":
            size = given[0].size
            return CallEstimate(size.cost(STRING_FACTOR), Size(size.least // 4, size.most))
        return _on_text(name, receiver, given) or CallEstimate(1)

    # Macros

    def _fold(self, node: Fold) -> int:
        cost = self.cost(node.over)
        count = self._size_or_unknown(node.over)
        self._locals.append(self._fold_variables(node))
        condition = 0 if node.condition is None else self.cost(node.condition)
        result = 0 if node.result is None else self.cost(node.result)
        gathered = self._gathered(node)
        self._locals.pop()
        turn = _TURNS[node.kind] + condition + result
        begin, end = 0, 1
        if node.kind in ("all", "exists", "exists_one"):
            self._keep(node, SCALAR)
            end += node.kind == "exists_one"
        elif node.kind in ("map", "filter"):
            self._keep(node, count, _NOTHING.union(_Entry(SCALAR, gathered)))
            begin = LIST_COST
        else:
            self._keep(node, count)
            begin = MAP_COST
        return capped(cost + begin + end + count.most * turn)

    def _gathered(self, node: Fold) -> Size:
        """Of an item of the list that the macro makes."""
        if node.result is not None:
            return self._size_or_unknown(node.result)
        local = self._locals[-1][node.variables[0]]
        return self._size_at(local.path) or local.size or UNKNOWN

    def _fold_variables(self, node: Fold) -> dict[str, _Local]:
        path, entry = self._path(node.over), self._entry(node.over)
        is_list = self._type(node.over).name == "list"
        item_size, key_size = (None, None) if entry is None else (entry.value, entry.key)
        item = _Local((*path, "@items" if is_list else "@values"), item_size)
        key = _Local((*path, "@indices" if is_list else "@keys"), key_size)
        if len(node.variables) == 2:
            return {node.variables[0]: key, node.variables[1]: item}
        return {node.variables[0]: item if is_list else key}

    def _bind(self, node: Bind) -> int:
        cost = LIST_COST + self.cost(node.value)  # an empty list, over which nothing is done
        local = _Local(self._path(node.value), self._size(node.value), self._entry(node.value))
        self._locals.append({node.name: local})
        cost += self.cost(node.body)
        self._keep(node, self._size(node.body), self._entry(node.body))
        self._locals.pop()
        return capped(cost)

    def _optional_map(self, node: OptionalMap) -> int:
        """`target.hasValue() ? optional.of(bind(name, target.value(), body)) : optional.none()`"""
        target = self.cost(node.target)
        inner = self._type(node.target).parameters
        size = SCALAR if inner and _is_scalar(inner[0]) else None
        self._locals.append({node.name: _Local((), size)})
        body = self.cost(node.body)
        self._locals.pop()
        self._keep(node, SCALAR if _is_scalar(self._type(node)) else UNKNOWN)
        return capped((target + 1) * 2 + LIST_COST + body + (not node.flat))


def _on_text(name: str, receiver: Operand | None, given: Sequence[Operand]) -> CallEstimate | None:
    if name == "strings.quote" and len(given) == 1:
        size = given[0].size
        quoted = Size(capped(size.least + 2), capped(size.most * 2 + 2))
        return CallEstimate(size.cost(STRING_FACTOR), quoted)
    if receiver is None:
        return None
    text = receiver.size
    if name == "format":
        return CallEstimate(text.cost(STRING_FACTOR))
    if len(given) != 1:
        return None
    if name in ("startsWith", "endsWith"):
        return CallEstimate(given[0].size.cost(STRING_FACTOR))
    if name == "contains":
        parts = text.cost(STRING_FACTOR) * given[0].size.cost(STRING_FACTOR)
        return CallEstimate(capped(parts))
    return CallEstimate(search_cost(text, given[0].size)) if name == "matches" else None


def search_cost(text: Size, pattern: Size) -> int:
    """By a regular expression; an empty text still costs what the expression does."""
    return capped(text.plus(SCALAR).cost(STRING_FACTOR) * pattern.cost(REGEX_FACTOR))


def _literal_size(node: Node) -> Size | None:
    match node:
        case Constant(value=str() | bytes() as value):
            return Size(len(value), len(value))
        case Constant():
            return SCALAR
        case ListOf(elements=elements):
            return Size(len(elements), len(elements))
        case MapOf(entries=entries):
            return Size(len(entries), len(entries))
    return None


def _is_scalar(kind: Type) -> bool:
    if kind.name == "optional_type" and kind.parameters:
        return _is_scalar(kind.parameters[0])
    return kind in _SCALARS


def _hull(sizes: Sequence[Size]) -> Size:
    if not sizes:
        return EMPTY
    return Size(min(size.least for size in sizes), max(size.most for size in sizes))
