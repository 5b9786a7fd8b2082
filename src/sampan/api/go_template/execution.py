"""Go's text/template, last step: nodes and data to text.

Job: walk the nodes; what cannot be done is told with its place, as Go tells it.
Invariant: what was written before a failure is kept.
"""

from collections.abc import Collection, Mapping
from typing import Any

from sampan.api.go_quoting import quoted
from sampan.api.go_template import nodes
from sampan.api.go_template.functions import (
    ANY,
    FUNCTIONS,
    NAMES,
    STRING,
    VALUE,
    CallError,
    Function,
)
from sampan.api.go_template.nodes import Node, Pipe, Term
from sampan.api.go_template.parser import NAME, TemplateError, parse
from sampan.api.go_template.values import (
    NOTHING,
    Boxed,
    data_of,
    is_true,
    text_of,
    type_name,
    unboxed,
)
from sampan.api.objects import Obj

MOST_CALLS = 400  # of templates by templates; Go's limit is the machine's
_TOO_DEEP = f"template: {NAME}: exceeded maximum template depth ({MOST_CALLS})"
_MISSING = object()  # no value comes through the pipe


class _Break(Exception):  # no error: {{break}} on its way to its range
    pass


class _Continue(Exception):  # no error: {{continue}} on its way to its range
    pass


class Template:
    """A template, parsed once. Raises TemplateError."""

    def __init__(
        self, text: str, *, allow_missing: bool = True, further: Collection[str] = ()
    ) -> None:
        """`further`: names of functions that `rendered` will be given."""
        self._text = text
        self._templates = parse(text, NAMES.union(further))
        self._allow_missing = allow_missing

    def rendered(self, data: Any, further: Mapping[str, Function]) -> str:
        """Numbers stay what they are. Raises TemplateError."""
        run = _Execution(self._text, self._templates, self._allow_missing, further)
        try:
            run.whole(data)
        except RecursionError as error:
            raise TemplateError(_TOO_DEEP) from error
        return run.text()

    def execute(self, obj: Obj) -> tuple[str, str]:
        """What was written, and what went wrong; empty where nothing did."""
        run = _Execution(self._text, self._templates, self._allow_missing, {})
        try:
            run.whole(data_of(obj))
        except TemplateError as error:
            return run.text(), str(error)
        except RecursionError:
            return run.text(), _TOO_DEEP
        return run.text(), ""


class _Execution:
    def __init__(
        self,
        source: str,
        templates: dict[str, list[Node]],
        allow_missing: bool,
        further: Mapping[str, Function],
    ) -> None:
        self._source, self._templates = source.encode(), templates
        self._allow_missing, self._further = allow_missing, further
        self._out: list[str] = []
        self._name = NAME
        self._variables: list[tuple[str, Any]] = []
        self._node: Any = None
        self._depth = 0

    def text(self) -> str:
        return "".join(self._out)

    def whole(self, data: Any) -> None:
        self._variables = [("$", data)]
        self._walk_all(data, self._templates[NAME])

    def _fail(self, why: str) -> TemplateError:
        if self._node is None:
            return TemplateError(f"template: {self._name}: {why}")
        before = self._source[: self._node.position]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1)
        place = f"{NAME}:{line}:{column}"
        return TemplateError(
            f"template: {place}: executing {quoted(self._name)} at <{self._node}>: {why}"
        )

    # --- nodes

    def _walk_all(self, dot: Any, items: nodes.Nodes) -> None:
        for node in items:
            self._walk(dot, node)

    def _walk(self, dot: Any, node: Node) -> None:
        self._node = node
        match node:
            case nodes.Text():
                self._out.append(node.text)
            case nodes.Action():
                value = self._pipeline(dot, node.pipe)
                if not node.pipe.declared:
                    self._node = node
                    self._out.append("<no value>" if value is NOTHING else text_of(value))
            case nodes.Branch():
                if node.word == "range":
                    self._range(dot, node)
                else:
                    self._choose(dot, node)
            case nodes.Call():
                self._call_template(dot, node)
            case nodes.Jump():
                raise _Break if node.word == "break" else _Continue

    def _choose(self, dot: Any, node: nodes.Branch) -> None:
        mark = len(self._variables)
        value = self._pipeline(dot, node.pipe)
        if is_true(value):
            self._walk_all(value if node.word == "with" else dot, node.body)
        elif node.otherwise is not None:
            self._walk_all(dot, node.otherwise)
        del self._variables[mark:]

    def _range(self, dot: Any, node: nodes.Branch) -> None:
        outer = len(self._variables)
        value = unboxed(self._pipeline(dot, node.pipe))
        mark = len(self._variables)
        pairs = self._pairs(value, node)
        try:
            for index, element in pairs:
                self._set_range_variables(node.pipe, index, element, mark)
                try:
                    self._walk_all(element, node.body)
                except _Continue:
                    pass
                finally:
                    del self._variables[mark:]
        except _Break:
            pass
        if not pairs and node.otherwise is not None:
            self._walk_all(dot, node.otherwise)
        del self._variables[outer:]

    def _pairs(self, value: Any, node: nodes.Branch) -> list[tuple[Any, Any]]:
        if isinstance(value, list):
            return [(index, Boxed(item)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return [(key, Boxed(value[key])) for key in sorted(value)]
        if value is NOTHING:
            return []
        if isinstance(value, int) and not isinstance(value, bool):
            if len(node.pipe.declared) > 1:
                raise self._fail(
                    f"can't use {text_of(value)} to iterate over more than one variable"
                )
            return [(NOTHING, number) for number in range(value)]
        raise self._fail(f"range can't iterate over {text_of(value)}")

    def _set_range_variables(self, pipe: Pipe, index: Any, element: Any, mark: int) -> None:
        names = [variable.names[0] for variable in pipe.declared]
        if not names:
            return
        values = [element] if len(names) == 1 else [index, element]
        for at, (name, value) in enumerate(zip(names, values, strict=True)):
            if pipe.assigns:
                self._assign(name, value)
            else:
                place = mark - len(names) + at
                self._variables[place] = (self._variables[place][0], value)

    def _call_template(self, dot: Any, node: nodes.Call) -> None:
        if node.name not in self._templates:
            raise self._fail(f"template {quoted(node.name)} not defined")
        if self._depth >= MOST_CALLS:
            raise self._fail(f"exceeded maximum template depth ({MOST_CALLS})")
        data = self._pipeline(dot, node.pipe) if node.pipe is not None else NOTHING
        outer = self._name, self._variables
        self._name, self._variables = node.name, [("$", data)]
        self._depth += 1
        self._walk_all(data, self._templates[node.name])
        self._depth -= 1
        self._name, self._variables = outer

    # --- pipelines

    def _pipeline(self, dot: Any, pipe: Pipe) -> Any:
        self._node = pipe
        value: Any = _MISSING
        for command in pipe.commands:
            value = unboxed(self._command(dot, command, value))
        for variable in pipe.declared:
            if pipe.assigns:
                self._assign(variable.names[0], value)
            else:
                self._variables.append((variable.names[0], value))
        return value

    def _assign(self, name: str, value: Any) -> None:
        for at in range(len(self._variables) - 1, -1, -1):
            if self._variables[at][0] == name:
                self._variables[at] = (name, value)
                return
        raise self._fail(f"undefined variable: {name}")

    def _command(self, dot: Any, command: nodes.Command, final: Any) -> Any:
        first, arguments = command.arguments[0], command.arguments
        match first:
            case nodes.Field() | nodes.Chain() | nodes.Variable():
                return self._named(dot, first, arguments, final)
            case nodes.Identifier():
                return self._function(dot, first, command, arguments, final)
            case nodes.Pipe():
                self._refuse_arguments(arguments, final)
                return self._pipeline(dot, first)
        self._node = first
        self._refuse_arguments(arguments, final)
        if isinstance(first, nodes.Literal) and first.word == "nil":
            raise self._fail("nil is not a command")
        return self._constant(dot, first)

    def _refuse_arguments(self, arguments: tuple[Term, ...], final: Any) -> None:
        if len(arguments) > 1 or final is not _MISSING:
            raise self._fail(f"can't give argument to non-function {arguments[0]}")

    def _constant(self, dot: Any, node: Term) -> Any:
        if isinstance(node, nodes.Literal):
            return dot if node.word == "dot" else node.value
        assert isinstance(node, nodes.Number)
        self._node = node
        text = node.source
        if node.complex is not None:
            return node.complex
        is_hex = text[:2].lower() == "0x" and not any(letter in text for letter in "pP")
        is_decimal = not is_hex and not text.startswith("'") and set(text) & set(".eEpP")
        if node.float is not None and is_decimal:
            return node.float
        if node.integer is None or not -(2**63) <= node.integer < 2**63:
            raise self._fail(f"{text} overflows int")
        return node.integer

    def _named(self, dot: Any, node: Any, arguments: tuple[Term, ...] | None, final: Any) -> Any:
        """A field of dot, of a variable, or of what another term gives."""
        self._node = node
        names = node.names
        if isinstance(node, nodes.Field):
            receiver = dot
        elif isinstance(node, nodes.Variable):
            receiver = self._variable(names[0])
            names = names[1:]
            if not names:
                self._refuse_arguments(arguments or (node,), final)
                return receiver
        else:
            if isinstance(node.node, nodes.Literal) and node.node.word == "nil":
                raise self._fail(f"indirection through explicit nil in {node}")
            receiver = self._argument(dot, None, node.node)
        for name in names[:-1]:
            receiver = self._field(name, node, None, _MISSING, receiver)
        return self._field(names[-1], node, arguments, final, receiver)

    def _variable(self, name: str) -> Any:
        for known, value in reversed(self._variables):
            if known == name:
                return value
        raise self._fail(f"undefined variable: {name}")

    def _field(
        self, name: str, node: Any, arguments: tuple[Term, ...] | None, final: Any, receiver: Any
    ) -> Any:
        if receiver is NOTHING:
            if not self._allow_missing:
                raise self._fail(f"nil data; no entry for key {quoted(name)}")
            return NOTHING
        said = type_name(receiver)
        value = unboxed(receiver)
        if value is NOTHING:
            raise self._fail(f"nil pointer evaluating {said}.{name}")
        if isinstance(value, dict):
            if (arguments is not None and len(arguments) > 1) or final is not _MISSING:
                raise self._fail(f"{name} is not a method but has arguments")
            if name in value:
                return Boxed(value[name])
            if not self._allow_missing:
                raise self._fail(f"map has no entry for key {quoted(name)}")
            return NOTHING
        raise self._fail(f"can't evaluate field {name} in type {said}")

    # --- functions

    def _function(
        self,
        dot: Any,
        node: nodes.Identifier,
        command: Any,
        arguments: tuple[Term, ...],
        final: Any,
    ) -> Any:
        self._node = node
        words = arguments[1:]
        if node.name in ("and", "or"):
            return self._and_or(dot, node.name, words, final)
        function = self._further.get(node.name) or FUNCTIONS[node.name]
        self._check_count(node.name, function, len(words), final)
        values = [
            self._argument(dot, _type_at(function, at), word) for at, word in enumerate(words)
        ]
        if final is not _MISSING:
            values.append(self._checked(final, _type_at(function, len(words))))
        try:
            return function.call(*values)
        except CallError as error:
            self._node = command
            why = str(error).replace("{name}", str(words[0]) if words else text_of(final))
            raise self._fail(f"error calling {node.name}: {why}") from error

    def _check_count(self, name: str, function: Function, count: int, final: Any) -> None:
        given = count + (final is not _MISSING)
        if function.variadic:
            if given < len(function.fixed):
                raise self._fail(
                    f"wrong number of args for {name}: want at least {len(function.fixed)} got "
                    f"{count}"
                )
        elif given != len(function.fixed):
            want = len(function.fixed)
            raise self._fail(f"wrong number of args for {name}: want {want} got {given}")

    def _and_or(self, dot: Any, name: str, words: tuple[Term, ...], final: Any) -> Any:
        if not words and final is _MISSING:
            raise self._fail(f"wrong number of args for {name}: want at least 1 got 0")
        value: Any = NOTHING
        for word in words:
            value = self._argument(dot, VALUE, word)
            if is_true(value) == (name == "or"):
                return value
        return value if final is _MISSING else final

    def _argument(self, dot: Any, kind: str | None, node: Term) -> Any:
        self._node = node
        match node:
            case nodes.Literal(word="dot"):
                return self._checked(dot, kind)
            case nodes.Literal(word="nil"):
                if kind == STRING:
                    raise self._fail("cannot assign nil to string")
                return NOTHING
            case nodes.Field() | nodes.Variable() | nodes.Chain():
                return self._checked(self._named(dot, node, None, _MISSING), kind)
            case nodes.Pipe():
                return self._checked(self._pipeline(dot, node), kind)
            case nodes.Identifier():
                return self._checked(self._function(dot, node, node, (node,), _MISSING), kind)
        if kind == STRING and not (isinstance(node, nodes.Literal) and node.word == "string"):
            raise self._fail(f"expected string; found {node}")
        return self._constant(dot, node)

    def _checked(self, value: Any, kind: str | None) -> Any:
        """As validateType: strings must be strings; anything else takes all."""
        if kind != STRING:
            return value
        if value is NOTHING:
            raise self._fail("invalid value; expected string")
        inner = value.value if isinstance(value, Boxed) and value.value is not None else value
        if not isinstance(inner, str):
            raise self._fail(f"wrong type for value; expected string; got {type_name(inner)}")
        return inner


def _type_at(function: Function, at: int) -> str:
    if at < len(function.fixed):
        return function.fixed[at]
    return function.variadic or ANY
