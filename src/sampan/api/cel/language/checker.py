"""Type checker: resolves the names, functions and types of an expression.

Job: give every node a type, every name a meaning and every call its possible overloads.
Invariant: where a type is `dyn` nothing is refused: the evaluation will tell.
"""

from collections.abc import Sequence
from dataclasses import field

from sampan.api.cel.language import types
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CompileError, Issue
from sampan.api.cel.language.functions import Overload
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
    root_of,
)
from sampan.api.cel.language.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    Substitution,
    Type,
    is_dynamic,
    list_of,
    map_of,
    optional_of,
)
from sampan.api.cel.language.values import Value, type_of
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """What a name or a dotted name stands for: a variable, or a value that is known."""

    variable: str = ""
    value: Value = None


@dataclass(frozen=True, slots=True)
class Checked:
    root: Node
    types: dict[int, Type] = field(default_factory=dict)
    references: dict[int, Reference] = field(default_factory=dict)  # none: a local variable
    overloads: dict[int, list[Overload]] = field(default_factory=dict)
    plain: set[int] = field(default_factory=set)  # calls whose target is part of the name

    @property
    def result_type(self) -> Type:
        return self.types[self.root.id]

    @property
    def variables(self) -> frozenset[str]:
        """Which of the environment's it speaks of."""
        return frozenset(
            reference.variable for reference in self.references.values() if reference.variable
        )


def check(source: str, root: Node, environment: Environment) -> Checked:
    """Raises CompileError."""
    checker = _Checker(root, environment)
    try:
        return checker.whole(source)
    except RecursionError as error:
        issue = Issue(0, "expression recursion limit exceeded: 250")
        raise CompileError(source, [issue]) from error


_PATCH = "JSONPatch"  # upstream has an answer of its own to its unknown fields


class _Checker:
    def __init__(self, root: Node, environment: Environment) -> None:
        self._environment = environment
        self._checked = Checked(root)
        self._issues: list[Issue] = []
        self._known = Substitution()
        self._locals: list[dict[str, Type]] = []
        self._fresh = 0

    def whole(self, source: str) -> Checked:
        self._of(self._checked.root)
        if self._issues:
            raise CompileError(source, sorted(self._issues, key=lambda issue: issue.at))
        found = self._checked.types
        for number, match_ in found.items():
            found[number] = self._known.resolved(match_, DYN)
        return self._checked

    def _of(self, node: Node) -> Type:
        match node:
            case Constant():
                found = type_of(node.value)
            case Name():
                found = self._name(node)
            case Select():
                found = self._select(node)
            case Call():
                found = self._call(node)
            case ListOf():
                found = self._list(node)
            case MapOf():
                found = self._map(node)
            case Struct():
                found = self._struct(node)
            case Fold():
                found = self._fold(node)
            case Bind():
                value = self._of(node.value)
                found = self._within({node.name: value}, node.body)
            case OptionalMap():
                found = self._optional_map(node)
        self._checked.types[node.id] = found
        return found

    def _refuse(self, at: int, message: str) -> Type:
        self._issues.append(Issue(at, message))
        return ERROR

    def _undeclared_name(self, at: int, name: str) -> Type:
        return self._refuse(at, f"undeclared reference to '{name}' (in container '')")

    def _new_parameter(self) -> Type:
        self._fresh += 1
        return types.parameter(f"_var{self._fresh}")

    def _resolve(self, one: Type) -> Type:
        return self._known.resolved(one)

    # Names

    def _local(self, name: str) -> Type | None:
        return next((local[name] for local in reversed(self._locals) if name in local), None)

    def _name(self, node: Name) -> Type:
        local = None if node.absolute else self._local(node.name)
        if local is not None:
            return local
        return self._global(node.id, node.name) or self._undeclared_name(node.at, node.name)

    def _global(self, number: int, name: str) -> Type | None:
        environment = self._environment
        if name in environment.variables:
            self._checked.references[number] = Reference(variable=name)
            return environment.variables[name]
        if name in environment.constants:
            found, value = environment.constants[name]
            self._checked.references[number] = Reference(value=value)
            return found
        if environment.fields_of(name) is not None:
            made = types.object_type(name)
            self._checked.references[number] = Reference(value=made)
            return types.type_of_type(made)
        return None

    def _is_local(self, node: Node) -> bool:
        root = root_of(node)
        return root is not None and not root.absolute and self._local(root.name) is not None

    def _select(self, node: Select) -> Type:
        whole = dotted_name(node)
        if whole is not None and not self._is_local(node):
            found = self._global(node.id, whole)
            if found is not None:
                return found
        operand = self._resolve(self._of(node.operand))
        found = self._field(node, operand, node.optional)
        return BOOL if node.test else found

    def _field(self, node: Select, operand: Type, optional: bool) -> Type:
        if operand.name == "optional_type":
            inner = self._resolve(operand.parameters[0])
            return optional_of(self._field(node, inner, False))
        found = self._field_of(node, operand)
        return optional_of(found) if optional else found

    def _field_of(self, node: Select, operand: Type) -> Type:
        if operand.sort == "parameter":
            self._known.assign(operand, DYN)
            return DYN
        if is_dynamic(operand):
            return operand
        if operand.name == "map":
            return operand.parameters[1] if operand.parameters else DYN
        if operand.sort == "object":
            fields = self._environment.fields_of(operand.name)
            if fields is None:
                return DYN
            if node.field in fields:
                return fields[node.field]
            return self._refuse(node.at, f"undefined field '{node.field}'")
        return self._refuse(node.at, f"type '{operand}' does not support field selection")

    # Calls

    def _call(self, node: Call) -> Type:
        name, target = node.function, node.target
        if target is not None:
            space = dotted_name(target)
            qualified = f"{space}.{name}"
            known = space is not None and qualified in self._environment.functions
            if known and not self._is_local(target):
                self._checked.plain.add(node.id)
                return self._overload_type(node, qualified, False, node.arguments)
        arguments = node.arguments if target is None else (target, *node.arguments)
        if name in ("_&&_", "_||_"):
            return self._logic(node)
        if name not in self._environment.functions:
            for argument in arguments:
                self._of(argument)
            return self._undeclared_name(node.at, name)
        return self._overload_type(node, name, target is not None, arguments)

    def _overload_type(
        self, node: Call, name: str, member: bool, arguments: Sequence[Node]
    ) -> Type:
        given = tuple(self._resolve(self._of(argument)) for argument in arguments)
        return self._choose(node, name, member, given)

    def _choose(self, node: Call, name: str, member: bool, given: tuple[Type, ...]) -> Type:
        result: Type | None = None
        fitting: list[Overload] = []
        for overload in self._environment.functions[name]:
            if overload.member != member:
                continue
            wanted, gives = self._instance(overload)
            trial = self._known.copy()
            if not trial.assign_all(wanted, given):
                continue
            if not fitting:
                self._known.adopt(trial)
            fitting.append(overload)
            offered = trial.resolved(gives)
            if result is None:
                result = offered
            elif not _same(result, offered):
                result = DYN
        if result is None:
            return self._no_overload(node.at, name, member, given)
        self._checked.overloads[node.id] = fitting
        return result

    def _no_overload(self, at: int, name: str, member: bool, given: tuple[Type, ...]) -> Type:
        if ERROR in given:
            return ERROR  # said already
        shown = [str(self._known.resolved(item, DYN)) for item in given]
        inner = ", ".join(shown[1:] if member else shown)
        signature = f"{shown[0]}.({inner})" if member else f"({inner})"
        return self._refuse(at, f"found no matching overload for '{name}' applied to '{signature}'")

    def _instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """The overload with type parameters of its own."""
        fresh: dict[str, Type] = {}

        def renamed(one: Type) -> Type:
            if one.sort == "parameter":
                if one.name not in fresh:
                    fresh[one.name] = self._new_parameter()
                return fresh[one.name]
            if not one.parameters:
                return one
            return Type(one.name, tuple(renamed(each) for each in one.parameters), one.sort)

        return tuple(renamed(argument) for argument in overload.arguments), renamed(overload.result)

    def _logic(self, node: Call) -> Type:
        found = [self._resolve(self._of(argument)) for argument in node.arguments]
        for index, match_ in enumerate(found):
            if not self._known.assign(BOOL, match_):
                pair = (BOOL, match_) if index else (match_, found[1])
                return self._no_overload(node.at, node.function, False, pair)
        return BOOL

    # Literals

    def _list(self, node: ListOf) -> Type:
        element: Type | None = None
        for index, item in enumerate(node.elements):
            given = self._resolve(self._of(item))
            if index in node.optional:
                given = self._inside(item, given)
            element = self._join(item, element, given)
        return list_of(element or self._new_parameter())

    def _map(self, node: MapOf) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(entry.key, key, self._resolve(self._of(entry.key)))
            given = self._resolve(self._of(entry.value))
            if entry.optional:
                given = self._inside(entry.value, given)
            value = self._join(entry.value, value, given)
        return map_of(key or self._new_parameter(), value or self._new_parameter())

    def _inside(self, node: Node, given: Type) -> Type:
        inner = self._new_parameter()
        if not self._known.assign(optional_of(inner), given):
            return self._mismatch(node, optional_of(given), given)
        return self._resolve(inner)

    def _join(self, node: Node, before: Type | None, given: Type) -> Type:
        """Every item of a literal has one type; where one is dyn, all may be anything."""
        if before is None:
            return given
        if not self._known.assign(before, given):
            return self._mismatch(node, before, given)
        return DYN if is_dynamic(before) or is_dynamic(given) else self._resolve(before)

    def _mismatch(self, node: Node, wanted: Type, given: Type) -> Type:
        shown, other = self._known.resolved(wanted, DYN), self._known.resolved(given, DYN)
        if ERROR in (shown, other):
            return ERROR
        return self._refuse(node.at, f"expected type '{shown}' but found '{other}'")

    def _struct(self, node: Struct) -> Type:
        fields = self._environment.fields_of(node.name)
        if fields is None:
            for item in node.fields:
                self._of(item.value)
            return self._undeclared_name(node.at, node.name)
        for item in node.fields:
            given = self._resolve(self._of(item.value))
            if item.optional:
                given = self._inside(item.value, given)
            wanted = fields.get(item.name)
            if wanted is None and node.name == _PATCH:
                self._refuse(
                    item.at,
                    f"expected type of field '{item.name}' is '' but provided type is "
                    f"'{self._known.resolved(given, DYN)}'",
                )
            elif wanted is None:
                self._refuse(item.at, f"undefined field '{item.name}'")
            elif not self._known.assign(wanted, given):
                shown = (self._known.resolved(wanted, DYN), self._known.resolved(given, DYN))
                self._refuse(
                    item.at,
                    f"expected type of field '{item.name}' is '{shown[0]}' but provided type is "
                    f"'{shown[1]}'",
                )
        return types.object_type(node.name)

    # Macros

    def _within(self, names: dict[str, Type], body: Node) -> Type:
        self._locals.append(names)
        try:
            return self._of(body)
        finally:
            self._locals.pop()

    def _fold(self, node: Fold) -> Type:
        over = self._resolve(self._of(node.over))
        key, value = self._range(node.over, over)
        names = _variables(node.variables, key, value, over)
        if node.condition is not None:
            self._require_bool(node, names)
        if node.kind in ("all", "exists", "exists_one"):
            return BOOL
        if node.kind == "filter":
            return list_of(names[node.variables[0]])
        assert node.result is not None, node
        result = self._resolve(self._within(names, node.result))
        if node.kind == "map":
            return list_of(result)
        if node.kind == "transformMap":
            return map_of(key, result)
        return self._entries(node.result, result)

    def _require_bool(self, node: Fold, names: dict[str, Type]) -> None:
        assert node.condition is not None, node
        given = self._resolve(self._within(names, node.condition))
        if self._known.assign(BOOL, given):
            return
        functions = {"all": "_&&_", "exists": "_||_"}
        if node.kind in functions:
            self._no_overload(node.condition.at, functions[node.kind], False, (BOOL, given))
        else:
            shown: tuple[Type, ...] = (given, list_of(DYN), list_of(DYN))
            shown = (given, INT, INT) if node.kind == "exists_one" else shown
            self._no_overload(node.condition.at, "_?_:_", False, shown)

    def _range(self, node: Node, over: Type) -> tuple[Type, Type]:
        if over.sort == "parameter":
            self._known.assign(over, DYN)
            return DYN, DYN
        if is_dynamic(over):
            return DYN, DYN
        if over.name == "list":
            return INT, over.parameters[0] if over.parameters else DYN
        if over.name == "map":
            key, value = over.parameters or (DYN, DYN)
            return key, value
        self._refuse(
            node.at,
            f"expression of type '{over}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def _entries(self, node: Node, result: Type) -> Type:
        key, value = self._new_parameter(), self._new_parameter()
        if not self._known.assign(map_of(key, value), result):
            return self._mismatch(node, map_of(DYN, DYN), result)
        return self._resolve(map_of(key, value))

    def _optional_map(self, node: OptionalMap) -> Type:
        inner = self._inside(node.target, self._resolve(self._of(node.target)))
        body = self._resolve(self._within({node.name: inner}, node.body))
        if not node.flat:
            return optional_of(body)
        self._inside(node.body, body)
        return body


def _variables(names: tuple[str, ...], key: Type, value: Type, over: Type) -> dict[str, Type]:
    if len(names) == 2:
        return {names[0]: key, names[1]: value}
    return {names[0]: key if over.name == "map" else value}


def _same(one: Type, other: Type) -> bool:
    """Two overloads give the same as far as anybody can tell."""
    if one.sort == other.sort == "parameter":
        return True
    return (
        one.name == other.name
        and len(one.parameters) == len(other.parameters)
        and all(
            _same(mine, theirs)
            for mine, theirs in zip(one.parameters, other.parameters, strict=True)
        )
    )
