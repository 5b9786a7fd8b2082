"""Parser: tokens to a syntax tree.

Job: CEL's grammar, by precedence; macros are expanded as soon as their call is read.
Invariant: a chain of `&&` or `||` is one node, however long: its depth is one.
"""

import itertools
from collections.abc import Iterator

from sampan.api.cel.language import macros
from sampan.api.cel.language.errors import CompileError, Issue
from sampan.api.cel.language.lexer import Token, Unreadable, checked_int, tokens_of
from sampan.api.cel.language.syntax import (
    Call,
    Constant,
    Entry,
    Field,
    ListOf,
    MapOf,
    Name,
    Node,
    Select,
    Struct,
    dotted_name,
)

_BINARY = {
    "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_OPERATOR = {item: f"_{item}_" for item in _BINARY} | {"in": "@in"}
_RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
    "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING,"
    " BYTES, IDENTIFIER}"
)


def parse(source: str, known: frozenset[str]) -> Node:
    """`known`: which macros there are. Raises CompileError."""
    try:
        return _Parser(tokens_of(source), known).whole()
    except Unreadable as error:
        raise CompileError(source, [error.issue]) from error
    except RecursionError as error:
        issue = Issue(0, "expression recursion limit exceeded: 250")
        raise CompileError(source, [issue]) from error


class _Parser:
    def __init__(self, tokens: list[Token], known: frozenset[str]) -> None:
        self._tokens, self._known = tokens, known
        self._at = 0
        self._parentheses = 0  # that are open
        self._ids: Iterator[int] = itertools.count(1)

    def whole(self) -> Node:
        found = self._expression()
        if self._next.kind != "end":
            shown = self._next.text
            raise Unreadable(
                self._next.at, f"Syntax error: mismatched input '{shown}' expecting <EOF>"
            )
        return found

    # Tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _is(self, mark: str) -> bool:
        token = self._next
        return token.kind == "mark" and token.text == mark

    def _take(self) -> Token:
        token = self._next
        self._at += 1
        return token

    def _took(self, mark: str) -> bool:
        if self._is(mark):
            self._at += 1
            return True
        return False

    def _expect(self, mark: str) -> Token:
        if not self._is(mark):
            raise Unreadable(
                self._next.at,
                f"Syntax error: mismatched input '{self._next.text}' expecting '{mark}'",
            )
        return self._take()

    def _close(self) -> None:
        """A parenthesis. What would make sense with it, or without one token, is told so."""
        self._parentheses -= 1
        token = self._next
        if self._took(")"):
            return
        if token.kind == "end" and not self._parentheses:
            raise Unreadable(token.at, f"Syntax error: missing ')' at '{token.text}'")
        self._at += token.kind != "end"
        if self._is(")"):
            words = f"extraneous input '{token.text}' expecting ')'"
        else:
            words = f"mismatched input '{token.text}' expecting ')'"
        raise Unreadable(token.at, f"Syntax error: {words}")

    def _expect_name(self) -> Token:
        if self._next.kind != "name":
            raise Unreadable(
                self._next.at,
                f"Syntax error: mismatched input '{self._next.text}' expecting IDENTIFIER",
            )
        return self._take()

    def _call(self, at: int, function: str, *arguments: Node) -> Call:
        return Call(next(self._ids), at, function, None, arguments)

    # Operators, loosest first

    def _expression(self) -> Node:
        condition = self._either()
        if not self._is("?"):
            return condition
        at = self._take().at
        yes = self._either()
        self._expect(":")
        return self._call(at, "_?_:_", condition, yes, self._expression())

    def _either(self) -> Node:
        terms, at = [self._both()], self._next.at
        while self._took("||"):
            terms.append(self._both())
        return terms[0] if len(terms) == 1 else self._call(at, "_||_", *terms)

    def _both(self) -> Node:
        terms, at = [self._binary(3)], self._next.at
        while self._took("&&"):
            terms.append(self._binary(3))
        return terms[0] if len(terms) == 1 else self._call(at, "_&&_", *terms)

    def _binary(self, least: int) -> Node:
        left = self._unary()
        while self._next.kind == "mark":
            precedence = _BINARY.get(self._next.text, 0)
            if precedence < least:
                break
            operator = self._take()
            right = self._binary(precedence + 1)
            left = self._call(operator.at, _OPERATOR[operator.text], left, right)
        return left

    def _unary(self) -> Node:
        for mark, function in (("!", "!_"), ("-", "-_")):
            if not self._is(mark):
                continue
            at, count = self._next.at, 0
            while self._took(mark):
                count += 1
            number = self._next.value
            if mark == "-" and type(number) in (int, float) and self._next.kind == "literal":
                # The sign belongs to the number: the smallest one has no positive counterpart.
                return self._members(self._literal(-1 if count % 2 else 1, at))
            operand = self._members(self._primary())
            return self._call(at, function, operand) if count % 2 else operand
        return self._members(self._primary())

    def _literal(self, sign: int, at: int) -> Constant:
        token = self._take()
        value = token.value
        if type(value) is int:
            value = checked_int(sign * value, at)
        elif type(value) is float:
            value = sign * value
        return Constant(next(self._ids), at, value)

    # What binds tightest

    def _members(self, found: Node) -> Node:
        while self._next.kind == "mark":
            if self._is("."):
                found = self._member(found)
            elif self._is("["):
                found = self._index(found)
            elif self._is("{") and dotted_name(found) is not None:
                found = self._struct(dotted_name(found) or "")
            else:
                break
        return found

    def _member(self, operand: Node) -> Node:
        at = self._take().at
        if self._took("?"):
            name = self._expect_name().text
            return Select(next(self._ids), at, operand, name, optional=True)
        name = self._expect_name().text
        if not self._is("("):
            return Select(next(self._ids), at, operand, name)
        opening = self._take().at
        arguments = self._arguments(")")
        expanded = macros.expanded_member(self._known, self._ids, opening, operand, name, arguments)
        return expanded or Call(next(self._ids), opening, name, operand, arguments)

    def _index(self, operand: Node) -> Node:
        at = self._take().at
        function = "_[?_]" if self._took("?") else "_[_]"
        index = self._expression()
        self._expect("]")
        return self._call(at, function, operand, index)

    def _primary(self) -> Node:
        token = self._next
        if token.kind == "literal":
            return self._literal(1, token.at)
        if token.kind == "name":
            return self._name(absolute=False)
        if self._took("."):
            return self._name(absolute=True)
        if self._took("("):
            self._parentheses += 1
            inner = self._expression()
            self._close()
            return inner
        if self._took("["):
            return self._list(token.at)
        if self._took("{"):
            return self._map(token.at)
        raise Unreadable(
            token.at, f"Syntax error: mismatched input '{token.text}' expecting {_STARTS}"
        )

    def _name(self, absolute: bool) -> Node:
        token = self._expect_name()
        if token.text in _RESERVED:
            raise Unreadable(token.at, f"reserved identifier: {token.text}")
        if not self._is("("):
            return Name(next(self._ids), token.at, token.text, absolute)
        opening = self._take().at
        arguments = self._arguments(")")
        expanded = macros.expanded_function(self._known, self._ids, opening, token.text, arguments)
        return expanded or Call(next(self._ids), opening, token.text, None, arguments)

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._is(closing):
            found.append(self._expression())
            if not self._took(","):
                break
            if self._is(closing):
                # Unlike lists and maps, calls have no trailing comma.
                raise Unreadable(
                    self._next.at,
                    f"Syntax error: mismatched input '{closing}' expecting {_STARTS}",
                )
        self._expect(closing)
        return tuple(found)

    def _list(self, at: int) -> ListOf:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._is("]"):
            if self._took("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._took(","):
                break
        self._expect("]")
        return ListOf(next(self._ids), at, tuple(elements), frozenset(optional))

    def _map(self, at: int) -> MapOf:
        entries: list[Entry] = []
        while not self._is("}"):
            optional = self._took("?")
            key = self._expression()
            self._expect(":")
            entries.append(Entry(next(self._ids), key, self._expression(), optional))
            if not self._took(","):
                break
        self._expect("}")
        return MapOf(next(self._ids), at, tuple(entries))

    def _struct(self, name: str) -> Struct:
        at = self._take().at
        fields: list[Field] = []
        while not self._is("}"):
            optional = self._took("?")
            token = self._expect_name()
            colon = self._expect(":").at
            fields.append(Field(colon, token.text, self._expression(), optional))
            if not self._took(","):
                break
        self._expect("}")
        return Struct(next(self._ids), at, name, tuple(fields))
