"""Go's text/template, second step: items to nodes.

Job: the templates of a text, by name; mistakes in Go's words, with their line. Pure.
"""

from sampan.api.go_quoting import quoted, unquoted
from sampan.api.go_template.lexer import Item, Lexer
from sampan.api.go_template.nodes import (
    Action,
    Branch,
    Call,
    Chain,
    Command,
    Field,
    Identifier,
    Jump,
    Literal,
    Node,
    Number,
    Pipe,
    Term,
    Text,
    Variable,
    number,
)

NAME = "output"  # what kubectl calls its template
MOST_NESTED = 10_000
OPERANDS = (
    "bool", "char constant", "complex", "dot", "field", "identifier", "number", "nil",
    "raw string", "string", "variable", "left paren",
)  # fmt: skip
_STOP = ("end", "else")


class TemplateError(Exception):
    """A template that cannot be parsed, or executed."""


def parse(text: str, functions: frozenset[str]) -> dict[str, list[Node]]:
    """The templates by name. Raises TemplateError."""
    parser = _Parser(text, functions)
    parser.whole()
    return parser.templates


class _Parser:
    def __init__(self, text: str, functions: frozenset[str]) -> None:
        self._items = Lexer(text).items()
        self._at = self._seen = 0
        self._functions = functions
        self._variables = ["$"]
        self._ranges, self._action_line, self._nested = 0, 0, 0
        self.templates: dict[str, list[Node]] = {}

    # --- items

    def _peek(self) -> Item:
        at = min(self._at, len(self._items) - 1)
        self._seen = max(self._seen, at)
        return self._items[at]

    def _next(self) -> Item:
        item = self._peek()
        self._at += 1
        return item

    def _peek_word(self) -> Item:
        """Spaces are gone after it."""
        while self._peek().kind == "space":
            self._at += 1
        return self._peek()

    def _next_word(self) -> Item:
        self._peek_word()
        return self._next()

    def _fail(self, why: str) -> TemplateError:
        """In the line that was read last."""
        return TemplateError(f"template: {NAME}:{self._items[self._seen].line}: {why}")

    def _unexpected(self, item: Item, context: str) -> TemplateError:
        if item.kind != "error":
            return self._fail(f"unexpected {item} in {context}")
        more = ""
        if self._action_line and self._action_line != item.line:
            more = f" in action started at {NAME}:{self._action_line}"
            if item.value.endswith(" action"):
                more = more.removeprefix(" in action")
        return self._fail(f"{item}{more}")

    def _expect(self, kinds: tuple[str, ...], context: str) -> Item:
        item = self._next_word()
        if item.kind not in kinds:
            raise self._unexpected(item, context)
        return item

    # --- templates

    def whole(self) -> None:
        nodes: list[Node] = []
        while self._peek().kind != "eof":
            if self._peek().kind == "left":
                begin = self._at
                self._next()
                word = self._next_word()
                if word.kind == "keyword" and word.value == "define":
                    self._definition()
                    continue
                self._at = begin
            node = self._text_or_action()
            if isinstance(node, str):
                raise self._fail(f"unexpected {{{{{node}}}}}")
            nodes.append(node)
        self._add(NAME, nodes)

    def _definition(self) -> None:
        name = self._unquoted(self._expect(("string", "raw string"), "define clause"))
        self._expect(("right",), "define clause")
        self._inner(name, "define clause")

    def _inner(self, name: str, context: str) -> None:
        """A template in the template: its variables and ranges are its own."""
        outer = self._variables, self._ranges
        self._variables, self._ranges = ["$"], 0
        nodes, end = self._list()
        if end != "end":
            raise self._fail(f"unexpected {{{{{end}}}}} in {context}")
        self._variables, self._ranges = outer
        self._add(name, nodes)

    def _add(self, name: str, nodes: list[Node]) -> None:
        if name not in self.templates or _is_empty(self.templates[name]):
            self.templates[name] = nodes
        elif not _is_empty(nodes):
            raise self._fail(f"template: multiple definition of template {quoted(name)}")

    def _unquoted(self, item: Item) -> str:
        try:
            return unquoted(item.value)
        except ValueError as error:
            raise self._fail(str(error)) from error

    # --- nodes

    def _list(self) -> tuple[list[Node], str]:
        """Up to {{end}} or {{else}}, and which of them it was."""
        nodes: list[Node] = []
        while self._peek_word().kind != "eof":
            node = self._text_or_action()
            if isinstance(node, str):
                return nodes, node
            nodes.append(node)
        raise self._fail("unexpected EOF")

    def _text_or_action(self) -> Node | str:
        item = self._next_word()
        if item.kind == "text":
            return Text(item.position, item.value)
        if item.kind != "left":
            raise self._unexpected(item, "input")
        self._action_line = item.line
        try:
            return self._action()
        finally:
            self._action_line = 0

    def _action(self) -> Node | str:
        item = self._next_word()
        if item.kind == "keyword":
            match item.value:
                case "block":
                    return self._block()
                case "break" | "continue":
                    return self._jump(item)
                case "else":
                    return self._else()
                case "end":
                    self._expect(("right",), "end")
                    return "end"
                case "if" | "with" | "range":
                    return self._branch(item.value)
                case "template":
                    return self._call()
        self._at -= 1
        return Action(self._peek().position, self._pipeline("command", "right"))

    def _jump(self, item: Item) -> Jump:
        word = item.value
        after = self._next_word()
        if after.kind != "right":
            raise self._unexpected(after, f"{{{{{word}}}}}")
        if not self._ranges:
            raise self._fail(f"{{{{{word}}}}} outside {{{{range}}}}")
        return Jump(item.position, word)

    def _else(self) -> str:
        item = self._peek_word()
        if item.kind != "keyword" or item.value not in ("if", "with"):
            self._expect(("right",), "else")
        return "else"

    def _branch(self, word: str) -> Branch:
        count = len(self._variables)
        pipe = self._pipeline(word, "right")
        self._ranges += word == "range"
        body, end = self._list()
        self._ranges -= word == "range"
        otherwise: list[Node] | None = None
        if end == "else":
            item = self._peek()
            if word != "range" and item.kind == "keyword" and item.value == word:
                self._next()
                otherwise = [self._branch(word)]
            else:
                otherwise, end = self._list()
                if end != "end":
                    raise self._fail(f"expected end; found {{{{{end}}}}}")
        del self._variables[count:]
        return Branch(pipe.position, word, pipe, body, otherwise)

    def _block(self) -> Call:
        context = "block clause"
        item = self._next_word()
        name = self._template_name(item, context)
        pipe = self._pipeline(context, "right")
        self._inner(name, context)
        return Call(item.position, name, pipe)

    def _call(self) -> Call:
        context = "template clause"
        item = self._next_word()
        name = self._template_name(item, context)
        pipe = None
        if self._next_word().kind != "right":
            self._at -= 1
            pipe = self._pipeline(context, "right")
        return Call(item.position, name, pipe)

    def _template_name(self, item: Item, context: str) -> str:
        if item.kind not in ("string", "raw string"):
            raise self._unexpected(item, context)
        return self._unquoted(item)

    # --- pipelines

    def _pipeline(self, context: str, end: str) -> Pipe:
        first = self._peek_word()
        declared, assigns = self._declarations(context)
        commands: list[Command] = []
        while True:
            item = self._next_word()
            if item.kind == end:
                break
            if item.kind not in OPERANDS:
                raise self._unexpected(item, context)
            self._at -= 1
            commands.append(self._command())
        if not commands:
            raise self._fail(f"missing value for {context}")
        for stage, command in enumerate(commands[1:], 2):
            if isinstance(command.arguments[0], Literal | Number):
                raise self._fail(f"non executable command in pipeline stage {stage}")
        return Pipe(first.position, first.line, tuple(declared), assigns, tuple(commands))

    def _declarations(self, context: str) -> tuple[list[Variable], bool]:
        declared: list[Variable] = []
        while self._peek_word().kind == "variable":
            begin = self._at
            item = self._next()
            after = self._peek_word()
            if after.kind in ("assign", "declare"):
                self._next()
                declared.append(self._declare(item))
                return declared, after.kind == "assign"
            if after.kind != "char" or after.value != ",":
                self._at = begin
                break
            self._next()
            declared.append(self._declare(item))
            if context != "range" or len(declared) > 1:
                raise self._fail(f"too many declarations in {context}")
            if self._peek_word().kind not in ("variable", "right", "right paren"):
                raise self._fail("range can only initialize variables")
        return declared, False

    def _declare(self, item: Item) -> Variable:
        self._variables.append(item.value)
        return Variable(item.position, (item.value,))

    def _command(self) -> Command:
        position = self._peek_word().position
        arguments: list[Term] = []
        while True:
            self._peek_word()
            operand = self._operand()
            if operand is not None:
                arguments.append(operand)
            item = self._next()
            if item.kind == "space":
                continue
            if item.kind in ("right", "right paren"):
                self._at -= 1
            elif item.kind != "pipe":
                raise self._unexpected(item, "operand")
            break
        if not arguments:
            raise self._fail("empty command")
        return Command(position, tuple(arguments))

    def _operand(self) -> Term | None:
        node = self._term()
        if node is None or self._peek().kind != "field":
            return node
        position = self._peek().position
        names = []
        while self._peek().kind == "field":
            names.append(self._next().value[1:])
        if isinstance(node, Field):
            return Field(position, (*node.names, *names))
        if isinstance(node, Variable):
            return Variable(position, (*node.names, *names))
        if isinstance(node, Literal | Number):
            raise self._fail(f"unexpected . after term {quoted(str(node))}")
        return Chain(position, node, tuple(names))

    def _term(self) -> Term | None:
        item = self._next_word()
        match item.kind:
            case "identifier":
                if item.value not in self._functions:
                    raise self._fail(f"function {quoted(item.value)} not defined")
                return Identifier(item.position, item.value)
            case "dot" | "nil":
                return Literal(item.position, item.kind, item.value)
            case "variable":
                if item.value not in self._variables:
                    raise self._fail(f"undefined variable {quoted(item.value)}")
                return Variable(item.position, (item.value,))
            case "field":
                return Field(item.position, (item.value[1:],))
            case "bool":
                return Literal(item.position, "bool", item.value, item.value == "true")
            case "char constant" | "complex" | "number":
                return self._number(item)
            case "string" | "raw string":
                return Literal(item.position, "string", item.value, self._unquoted(item))
            case "left paren":
                return self._parenthesized()
        self._at -= 1
        return None

    def _parenthesized(self) -> Pipe:
        if self._nested >= MOST_NESTED:
            raise self._fail("max expression depth exceeded")
        self._nested += 1
        try:
            return self._pipeline("parenthesized pipeline", "right paren")
        except RecursionError as error:
            raise self._fail("max expression depth exceeded") from error
        finally:
            self._nested -= 1

    def _number(self, item: Item) -> Number:
        try:
            return number(item.position, item.value, item.kind)
        except ValueError as error:
            raise self._fail(str(error)) from error


def _is_empty(nodes: list[Node]) -> bool:
    return all(isinstance(node, Text) and not node.text.strip() for node in nodes)
