"""Evaluator: a checked tree compiled to closures.

Job: one closure for each node; what it costs is charged where a stretch of nodes begins.
Invariant: `&&` and `||` give the answer of the side that has one, whatever the other side's error.
Invariant: a stretch is charged before it runs, so that no evaluation outlives its limit unnoticed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sampan.api.cel.language import folds
from sampan.api.cel.language.checker import Checked
from sampan.api.cel.language.cost import LIST_COST, MAP_COST, STRUCT_COST, Interrupt
from sampan.api.cel.language.errors import CostExceeded, EvaluationError, no_overload
from sampan.api.cel.language.functions import Dispatch, Overload
from sampan.api.cel.language.operators import DIRECT, SIZED
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
)
from sampan.api.cel.language.types import is_dynamic
from sampan.api.cel.language.values import ABSENT, OptionalValue, Value, map_key


class Frame:
    """One evaluation under way. `left` are the steps until somebody is asked whether to go on:
    charging costs one comparison, and the clock is looked at once in a while."""

    __slots__ = ("_interrupt", "_reserve", "left", "locals", "variables")

    def __init__(
        self,
        variables: Mapping[str, Value],
        slots: int,
        allowed: int,
        interrupt: Interrupt | None = None,
    ) -> None:
        self.variables = variables
        self.locals: list[Value] = [None] * slots
        self._interrupt = interrupt
        self.left = allowed if interrupt is None else min(allowed, STRETCH)
        self._reserve = allowed - self.left

    @property
    def unspent(self) -> int:
        return max(self.left + self._reserve, 0)

    def charge(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            self.go_on()

    def go_on(self) -> None:
        """Raises CostExceeded, or what the interrupt raises."""
        whole = self.left + self._reserve
        if whole < 0:
            raise CostExceeded
        self.ask()
        self.left = min(whole, STRETCH)
        self._reserve = whole - self.left

    def ask(self) -> None:
        if self._interrupt is not None:
            self._interrupt()


Closure = Callable[[Frame], Value]
Compiled = tuple[Closure, int]  # and what it costs on top of what it charges itself
_SIZED_KINDS = frozenset({str, bytes, list})
_CONTAINERS = frozenset({list, dict})
STRETCH = 1000  # steps; 0.2 ms


class ObjectValue(dict[str, Any]):
    """`Object{…}`: a map that knows the type it was written with."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: dict[str, Value]) -> None:
        super().__init__(fields)
        self.type_name = type_name


class Compiler:
    def __init__(self, checked: Checked, unescaped: Callable[[str], str]) -> None:
        self._checked, self._unescaped = checked, unescaped
        self._scopes: list[dict[str, int]] = []
        self.slots = 0

    def block(self, node: Node) -> Closure:
        """What may or may not run, or runs many times, charges for itself."""
        run, cost = self.compiled(node)
        if not cost:
            return run

        def charged(frame: Frame) -> Value:
            frame.left -= cost
            if frame.left < 0:
                frame.go_on()
            return run(frame)

        return charged

    def compiled(self, node: Node) -> Compiled:
        match node:
            case Constant(value=value):
                return _constant(value), 0
            case Name():
                return self._name(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Struct():
                return self._struct(node)
            case Fold():
                return self._fold(node)
            case Bind():
                return self._bind(node)
            case OptionalMap():
                return self._optional_map(node)

    # Names and fields

    def _name(self, node: Name) -> Compiled:
        if node.id in self._checked.references:
            return self._reference(node.id)
        slot = next(scope[node.name] for scope in reversed(self._scopes) if node.name in scope)
        return lambda frame: frame.locals[slot], 1

    def _reference(self, number: int) -> Compiled:
        reference = self._checked.references[number]
        name = reference.variable
        if not name:
            return _constant(reference.value), 0

        def variable(frame: Frame) -> Value:
            try:
                return frame.variables[name]
            except KeyError:
                raise EvaluationError(f"no such attribute(s): {name}") from None

        return variable, 1

    def _select(self, node: Select) -> Compiled:
        if node.id in self._checked.references:
            return self._reference(node.id)
        operand, cost = self.compiled(node.operand)
        field = node.field
        if self._checked.types[node.operand.id].sort == "object":
            field = self._unescaped(field)
        if node.test:
            return partial(_has, operand, field), cost
        if node.optional:
            return partial(_optional_field, operand, field), cost + 1

        def select(frame: Frame) -> Value:
            value = operand(frame)
            if type(value) is dict:
                try:
                    return value[field]
                except KeyError:
                    raise EvaluationError(f"no such key: {field}") from None
            return _field(value, field)

        return select, cost + 1

    # Calls

    def _call(self, node: Call) -> Compiled:
        name = node.function
        if name == "_&&_":
            return partial(
                _connective, False, tuple(self.block(argument) for argument in node.arguments)
            ), 0
        if name == "_||_":
            return partial(
                _connective, True, tuple(self.block(argument) for argument in node.arguments)
            ), 0
        if name == "_?_:_":
            return self._conditional(node)
        if name in DIRECT and node.target is None:
            return self._operator(node)
        return self._function(node)

    def _conditional(self, node: Call) -> Compiled:
        condition, cost = self.compiled(node.arguments[0])
        yes, no = (self.block(argument) for argument in node.arguments[1:])

        def choose(frame: Frame) -> Value:
            decided = condition(frame)
            if decided is True:
                return yes(frame)
            if decided is False:
                return no(frame)
            raise no_overload()

        return choose, cost

    def _operator(self, node: Call) -> Compiled:
        function = DIRECT[node.function]
        first, cost = self.compiled(node.arguments[0])
        if len(node.arguments) == 1:
            return lambda frame: function(first(frame)), cost + 1
        second, more = self.compiled(node.arguments[1])
        total = cost + more + 1
        if node.function in SIZED:
            return _charged_by_length(function, first, second, node.function == "_+_"), total
        if node.function == "@in":
            return _searching(function, first, second), total
        return lambda frame: function(first(frame), second(frame)), total

    def _function(self, node: Call) -> Compiled:
        plain = node.target is None or node.id in self._checked.plain
        given = node.arguments if plain or node.target is None else (node.target, *node.arguments)
        compiled = [self.compiled(item) for item in given]
        overloads = self._checked.overloads[node.id]
        arguments = tuple(item for item, _ in compiled)
        cost = sum(more for _, more in compiled)
        if len(overloads) == 1 and not any(self._is_open(item) for item in given):
            return _calling(overloads[0], arguments, cost)
        dispatch = Dispatch(node.function, overloads)

        def call(frame: Frame) -> Value:
            values = tuple([argument(frame) for argument in arguments])
            chosen = dispatch.chosen(values)
            frame.charge(chosen.cost if isinstance(chosen.cost, int) else chosen.cost(*values))
            return chosen.implementation(*values)

        return call, cost

    def _is_open(self, node: Node) -> bool:
        """Whether only the evaluation will know the type."""
        found = self._checked.types[node.id]
        return is_dynamic(found) or found.name == "null_type"

    # Literals

    def _list(self, node: ListOf) -> Compiled:
        compiled = [self.compiled(element) for element in node.elements]
        elements = tuple(item for item, _ in compiled)
        cost = LIST_COST + sum(more for _, more in compiled)
        optional = node.optional
        if not optional:
            return lambda frame: [element(frame) for element in elements], cost

        def build(frame: Frame) -> Value:
            found: list[Value] = []
            for index, element in enumerate(elements):
                value = element(frame)
                if index not in optional:
                    found.append(value)
                elif _as_optional(value).present:
                    found.append(value.value)
            return found

        return build, cost

    def _map(self, node: MapOf) -> Compiled:
        entries = [
            (self.compiled(entry.key), self.compiled(entry.value), entry.optional)
            for entry in node.entries
        ]
        cost = MAP_COST + sum(key[1] + value[1] for key, value, _ in entries)
        pairs = tuple((key[0], value[0], optional) for key, value, optional in entries)

        def build(frame: Frame) -> Value:
            found: dict[Value, Value] = {}
            for key, value, optional in pairs:
                kept, made = map_key(key(frame)), value(frame)
                if optional and not _as_optional(made).present:
                    continue
                if kept in found:
                    raise EvaluationError(f"insert failed: key {kept} already exists")
                found[kept] = made.value if optional else made
            return found

        return build, cost

    def _struct(self, node: Struct) -> Compiled:
        compiled = [(item, self.compiled(item.value)) for item in node.fields]
        cost = STRUCT_COST + sum(more for _, (_, more) in compiled)
        parts = tuple(
            (self._unescaped(item.name), value, item.optional) for item, (value, _) in compiled
        )
        name = node.name

        def build(frame: Frame) -> Value:
            found: dict[str, Value] = {}
            for field, value, optional in parts:
                made = value(frame)
                if not optional:
                    found[field] = made
                elif _as_optional(made).present:
                    found[field] = made.value
            return ObjectValue(name, found)

        return build, cost

    # Macros

    def _scoped(self, names: tuple[str, ...]) -> tuple[int, ...]:
        slots = tuple(range(self.slots, self.slots + len(names)))
        self.slots += len(names)
        self._scopes.append(dict(zip(names, slots, strict=True)))
        return slots

    def _fold(self, node: Fold) -> Compiled:
        over, cost = self.compiled(node.over)
        slots = self._scoped(node.variables)
        condition = None if node.condition is None else self.block(node.condition)
        result = None if node.result is None else self.block(node.result)
        self._scopes.pop()
        return folds.fold(node.kind, over, slots, condition, result), cost

    def _bind(self, node: Bind) -> Compiled:
        value, cost = self.compiled(node.value)
        (slot,) = self._scoped((node.name,))
        body, more = self.compiled(node.body)
        self._scopes.pop()

        def bound(frame: Frame) -> Value:
            frame.locals[slot] = value(frame)
            return body(frame)

        return bound, cost + more

    def _optional_map(self, node: OptionalMap) -> Compiled:
        target, cost = self.compiled(node.target)
        (slot,) = self._scoped((node.name,))
        body = self.block(node.body)
        self._scopes.pop()
        flat = node.flat

        def mapped(frame: Frame) -> Value:
            found = _as_optional(target(frame))
            if not found.present:
                return found
            frame.locals[slot] = found.value
            made = body(frame)
            return _as_optional(made) if flat else OptionalValue(made)

        return mapped, cost + 1


def _constant(value: Value) -> Closure:
    return lambda _frame: value


def _as_optional(value: Value) -> OptionalValue:
    if type(value) is not OptionalValue:
        raise no_overload()
    return value


def _field(value: Value, field: str) -> Value:
    if isinstance(value, Mapping):
        try:
            return value[field]
        except KeyError:
            raise EvaluationError(f"no such key: {field}") from None
    if type(value) is OptionalValue:
        if not value.present:
            return value
        return _present_field(value.value, field)
    raise no_overload()


def _present_field(value: Value, field: str) -> OptionalValue:
    if not isinstance(value, Mapping):
        raise no_overload()
    return OptionalValue(value[field]) if field in value else ABSENT


def _optional_field(operand: Closure, field: str, frame: Frame) -> OptionalValue:
    value = operand(frame)
    if type(value) is OptionalValue:
        return _present_field(value.value, field) if value.present else value
    return _present_field(value, field)


def _has(operand: Closure, field: str, frame: Frame) -> bool:
    value = operand(frame)
    if type(value) is OptionalValue:
        if not value.present:
            return False
        value = value.value
    if not isinstance(value, Mapping):
        raise no_overload()
    return field in value


def _connective(decisive: bool, terms: tuple[Closure, ...], frame: Frame) -> bool:
    """`decisive` if any term is, even one after an error: False for `&&`, True for `||`."""
    trouble: EvaluationError | None = None
    for term in terms:
        try:
            value = term(frame)
        except EvaluationError as error:
            trouble = trouble or error
            continue
        if type(value) is not bool:
            trouble = trouble or no_overload()
        elif value is decisive:
            return decisive
    if trouble is not None:
        raise trouble
    return not decisive


def _charged_by_length(
    function: Callable[[Value, Value], Value], first: Closure, second: Closure, both: bool
) -> Closure:
    """Texts cost by their length: all of both where they are joined, else as far as compared."""

    def run(frame: Frame) -> Value:
        left, right = first(frame), second(frame)
        if type(left) in _SIZED_KINDS and type(right) is type(left):
            size = len(left) + len(right) if both else min(len(left), len(right))
            if size > 10:
                frame.charge((size - 1) // 10)
        if type(left) in _CONTAINERS:
            frame.ask()  # how much there is inside is not in the cost
        return function(left, right)

    return run


def _searching(
    function: Callable[[Value, Value], Value], first: Closure, second: Closure
) -> Closure:
    def run(frame: Frame) -> Value:
        value, container = first(frame), second(frame)
        if type(container) is list and len(container) > 1:
            frame.charge(len(container) - 1)
            frame.ask()
        return function(value, container)

    return run


def _calling(overload: Overload, arguments: tuple[Closure, ...], cost: int) -> Compiled:
    function, price = overload.implementation, overload.cost
    if isinstance(price, int):
        if len(arguments) == 1:
            only = arguments[0]
            return lambda frame: function(only(frame)), cost + price
        if len(arguments) == 2:
            first, second = arguments
            return lambda frame: function(first(frame), second(frame)), cost + price
        return lambda frame: function(*[argument(frame) for argument in arguments]), cost + price

    def call(frame: Frame) -> Value:
        values = [argument(frame) for argument in arguments]
        frame.charge(price(*values))
        frame.ask()
        return function(*values)

    return call, cost
