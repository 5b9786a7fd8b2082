"""Queries of Stages: the part of jq that looks into an object.

Job: text → a query, and what a query finds: paths, `.[]`, `|`, `,`, `//`, `select`, comparisons,
    `and`, `or`, `not`, `length`, constants. Pure.
Invariant: what is not among them is refused when the query is read, by its name.
Invariant: as KWOK has it, a query that fails finds nothing at all, and null counts as not found.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from sampan.core.digits import whole_number
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

MOST_CHARACTERS, MOST_FOUND, DEEPEST = 4096, 10_000, 50
_TOKEN = lazy_pattern(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>\d+(?:\.\d+)?)|'
    r"(?P<word>[A-Za-z_]\w*)|(?P<mark>//|==|!=|<=|>=|\?//|[.\[\]()|,?<>\-+*/%$:{};@=]))",
    re.ASCII,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_CONSTANTS = {"true": True, "false": False, "null": None}

Filter = Callable[[Any], Iterator[Any]]


class QueryError(ValueError):
    """The text is no query, or one that is not understood here."""


class _Failure(Exception):
    """A query cannot be answered of this object."""


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    _run: Filter

    def find(self, obj: Any) -> list[Any] | None:
        """What is there, without nulls; None where the object has no such shape."""
        found: list[Any] = []
        try:
            for value in self._run(obj):
                if len(found) >= MOST_FOUND:
                    return None
                if value is not None:
                    found.append(value)
        except _Failure:
            return None
        return found


def parse_query(text: str) -> Query:
    """Raises QueryError."""
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"a query of more than {MOST_CHARACTERS} characters")
    reader = _Reader(text)
    run = reader.pipe()
    reader.end()
    return Query(text, run)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._refused(self._tokens[self._at][1])

    def _refused(self, what: str) -> QueryError:
        return QueryError(f"{what!r} in the query {self._text!r} is not understood")

    def _peek(self, *marks: str) -> str:
        """The mark or word that comes next, if it is one of these."""
        if self._at < len(self._tokens):
            kind, said = self._tokens[self._at]
            if kind in ("mark", "word") and said in marks:
                return said
        return ""

    def _take(self, *marks: str) -> str:
        found = self._peek(*marks)
        if found:
            self._at += 1
        return found

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise QueryError(f"{mark!r} is missing in the query {self._text!r}")

    # From the loosest to the tightest, as jq binds them.

    def pipe(self) -> Filter:
        self._depth += 1
        if self._depth > DEEPEST:
            raise QueryError(f"the query {self._text!r} is nested too deeply")
        run = self._comma()
        while self._take("|"):
            run = _piped(run, self._comma())
        self._depth -= 1
        return run

    def _comma(self) -> Filter:
        run = self._alternative()
        while self._take(","):
            run = _both(run, self._alternative())
        return run

    def _alternative(self) -> Filter:
        run = self._or()
        if self._take("//"):
            return _alternative(run, self._alternative())
        return run

    def _or(self) -> Filter:
        run = self._and()
        while self._take("or"):
            run = _logical(run, self._and(), decides=True)
        return run

    def _and(self) -> Filter:
        run = self._comparison()
        while self._take("and"):
            run = _logical(run, self._comparison(), decides=False)
        return run

    def _comparison(self) -> Filter:
        run = self._postfix()
        mark = self._take("==", "!=", "<", "<=", ">", ">=")
        return _compared(run, mark, self._postfix()) if mark else run

    def _postfix(self) -> Filter:
        run = self._primary()
        while True:
            if self._take("["):
                run = self._bracket(run)
            elif self._take("."):
                run = self._after_dot(run)
            elif self._take("?"):
                run = _tolerant(run)
            else:
                return run

    def _primary(self) -> Filter:
        if self._at >= len(self._tokens):
            raise QueryError(f"the query {self._text!r} ends too early")
        kind, said = self._tokens[self._at]
        self._at += 1
        if kind == "string":
            return _constant(_unquoted(said))
        if kind == "number":
            return _constant(float(said) if "." in said else whole_number(said))
        if kind == "word":
            return self._named(said)
        if said == ".":
            return self._dotted()
        if said == "(":
            run = self.pipe()
            self._expect(")")
            return run
        raise self._refused(said)

    def _named(self, word: str) -> Filter:
        if word in _CONSTANTS:
            return _constant(_CONSTANTS[word])
        if word == "select":
            self._expect("(")
            condition = self.pipe()
            self._expect(")")
            return _selected(condition)
        if word in _FUNCTIONS:
            return _applied(_FUNCTIONS[word])
        raise self._refused(word)

    def _dotted(self) -> Filter:
        """What follows the dot that a path begins with."""
        if self._peek("["):
            return _itself
        if self._at < len(self._tokens) and self._tokens[self._at][0] in ("word", "string"):
            return self._field(_itself)
        return _itself

    def _after_dot(self, run: Filter) -> Filter:
        if self._take("["):
            return self._bracket(run)
        return self._field(run)

    def _field(self, run: Filter) -> Filter:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] not in ("word", "string"):
            raise QueryError(f"a name is missing after a dot in the query {self._text!r}")
        kind, said = self._tokens[self._at]
        self._at += 1
        return _looked_up(run, said if kind == "word" else _unquoted(said))

    def _bracket(self, run: Filter) -> Filter:
        if self._take("]"):
            return _iterated(run)
        is_negative = bool(self._take("-"))
        if self._at >= len(self._tokens):
            raise QueryError(f"']' is missing in the query {self._text!r}")
        kind, said = self._tokens[self._at]
        self._at += 1
        if kind == "string" and not is_negative:
            run = _looked_up(run, _unquoted(said))
        elif kind == "number" and "." not in said:
            run = _looked_up(run, whole_number(f"-{said}" if is_negative else said))
        else:
            raise self._refused(said)
        self._expect("]")
        return run


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    rest = text.rstrip()
    while at < len(rest):
        match = _TOKEN.match(rest, at)
        if match is None:
            raise QueryError(f"{rest[at:].strip()[:1]!r} in the query {text!r} is not understood")
        kind = str(match.lastgroup)
        found.append((kind, match[kind]))
        at = match.end()
    return found


def _unquoted(said: str) -> str:
    out, letters = [], iter(said[1:-1])
    for letter in letters:
        if letter != "\\":
            out.append(letter)
            continue
        escaped = next(letters)
        if escaped not in _ESCAPES:
            raise QueryError(f"'\\{escaped}' in the text {said} is not understood")
        out.append(_ESCAPES[escaped])
    return "".join(out)


# What the words do: each gives, for one value, any number of them.


def _itself(value: Any) -> Iterator[Any]:
    yield value


def _constant(said: Any) -> Filter:
    return lambda _value: iter((said,))


def _piped(first: Filter, second: Filter) -> Filter:
    return lambda value: (found for between in first(value) for found in second(between))


def _both(first: Filter, second: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        yield from first(value)
        yield from second(value)

    return run


def _alternative(first: Filter, second: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        found = [each for each in _tolerant(first)(value) if _is_true(each)]
        yield from found or second(value)

    return run


def _tolerant(run: Filter) -> Filter:
    def tolerant(value: Any) -> Iterator[Any]:
        try:
            yield from run(value)
        except _Failure:
            return

    return tolerant


def _looked_up(run: Filter, key: str | int) -> Filter:
    return lambda value: (_member(holder, key) for holder in run(value))


def _member(holder: Any, key: str | int) -> Any:
    if holder is None:
        return None
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key)
    if isinstance(holder, list) and isinstance(key, int):
        return holder[key] if -len(holder) <= key < len(holder) else None
    raise _Failure


def _iterated(run: Filter) -> Filter:
    def iterated(value: Any) -> Iterator[Any]:
        for holder in run(value):
            if isinstance(holder, dict):
                yield from holder.values()
            elif isinstance(holder, list):
                yield from holder
            else:
                raise _Failure

    return iterated


def _selected(condition: Filter) -> Filter:
    return lambda value: (value for said in condition(value) if _is_true(said))


def _logical(first: Filter, second: Filter, *, decides: bool) -> Filter:
    """`or` where what decides is true, else `and`: the second is not asked where the first does."""

    def run(value: Any) -> Iterator[Any]:
        for left in first(value):
            if _is_true(left) == decides:
                yield decides
            else:
                yield from (_is_true(right) for right in second(value))

    return run


def _compared(first: Filter, mark: str, second: Filter) -> Filter:
    compare = _COMPARISONS[mark]
    return lambda value: (compare(left, right) for right in second(value) for left in first(value))


def _applied(function: Callable[[Any], Any]) -> Filter:
    return lambda value: iter((function(value),))


def _is_true(value: Any) -> bool:
    return value is not None and value is not False


def _order(value: Any) -> tuple[int, Any]:
    """As jq sorts: null, false, true, numbers, texts; lists and objects are not compared here."""
    match value:
        case None:
            return 0, 0
        case bool():
            return 1, value
        case int() | float():
            return 2, value
        case str():
            return 3, value
    raise _Failure


def _equals(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _length(value: Any) -> Any:
    match value:
        case None:
            return 0
        case bool():
            raise _Failure
        case int() | float():
            return abs(value)
    return len(value)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _equals,
    "!=": lambda left, right: not _equals(left, right),
    "<": lambda left, right: _order(left) < _order(right),
    "<=": lambda left, right: _order(left) <= _order(right),
    ">": lambda left, right: _order(left) > _order(right),
    ">=": lambda left, right: _order(left) >= _order(right),
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "length": _length,
    "not": lambda value: not _is_true(value),
}
