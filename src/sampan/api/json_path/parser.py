"""JSONPath templates as values: `{.items[*].metadata.name}`, `{range …}…{end}`, filters, unions.

Job: a template → its nodes, as client-go's parser reads it, with its words for what is wrong. Pure.
Invariant: each letter is read once, and a part inside brackets once more: the time is linear.
"""

import re
from collections.abc import Callable

from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern


class JsonPathError(ValueError):
    """A template that cannot be parsed, or does not fit the data."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Text of the template, or a value that is written in an action."""

    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class Identifier:
    """`range`, `end`; any other is refused when it is evaluated."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    name: str


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`.*`: what is inside."""


@dataclass(frozen=True, slots=True)
class Recursive:
    """`..`: it, and everything inside, at any depth."""


@dataclass(frozen=True, slots=True)
class Array:
    """`[start:end:step]`. `is_index`: `[start]`, one item."""

    start: int | None
    end: int | None
    step: int | None
    is_index: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """`[?(left operator right)]`; without an operator whether there is anything to the left."""

    left: "Action"
    right: "Action"
    operator: str


@dataclass(frozen=True, slots=True)
class Union:
    """`[0,2]`, `['a','b']`."""

    members: "tuple[Action, ...]"


Node = Literal | Identifier | Field | Wildcard | Recursive | Array | Filter | Union
Action = tuple[Node, ...]  # each step continues with what the one before it has found
_DICT_KEY = lazy_pattern(r"'([^']*)'", re.DOTALL)
_SLICE = lazy_pattern(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON = lazy_pattern(r"([^!<>=]+)([!<>=]+)(.+)")
_INTEGER = lazy_pattern(r"[+-]?[0-9]+")
_FLOAT = lazy_pattern(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")
_LARGEST = 2**63 - 1
_SHORT = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34}
_LONG = {"x": 2, "u": 4, "U": 8}  # letters that give a number, and how many digits it has
_DIGITS = "0123456789"
_END = "\0end"  # of the text: no letter


def parse_template(text: str) -> tuple[Action, ...]:
    """Its texts and actions, each as a list of steps. Raises JsonPathError."""
    parts: list[Action] = []
    at = 0
    while at < len(text):
        opening = text.find("{", at)
        end = len(text) if opening < 0 else opening
        if end > at:
            parts.append((Literal(text[at:end]),))
        if opening < 0:
            break
        parser = _ActionParser(text, opening + 1)
        parts.append(parser.parse())
        at = parser.at
    return tuple(parts)


def _parse_action(text: str) -> Action:
    """Of a part inside brackets, which upstream reads as a template of its own."""
    return parse_template("{" + text + "}")[0]


class _ActionParser:
    """From behind `{` to behind its `}`."""

    def __init__(self, text: str, at: int) -> None:
        self._text, self.at = text, at
        self._nodes: list[Node] = []

    def parse(self) -> Action:
        text = self._text
        while not text.startswith("}", self.at):
            if text.startswith("[?(", self.at):
                self._filter()
            elif text.startswith("..", self.at):
                self._recursive()
            else:
                self._other(self._peek())
        self.at += 1
        return tuple(self._nodes)

    def _peek(self) -> str:
        return self._text[self.at] if self.at < len(self._text) else _END

    def _other(self, letter: str) -> None:
        if letter in (_END, "\r", "\n"):
            raise JsonPathError("unclosed action")
        if letter in " @$":  # what is there now: as client-go, also inside of a range
            self.at += 1
        elif letter == "[":
            self._array()
        elif letter in "'\"":
            self._quote(letter)
        elif letter == ".":
            self.at += 1
            self._field()
        elif letter in "+-" or letter in _DIGITS:
            self._number()
        elif _is_alphanumeric(letter):
            self._identifier()
        else:
            raise JsonPathError(f"unrecognized character in action: {_named(letter)}")

    def _until(self, is_end: Callable[[str], bool]) -> str:
        start = self.at
        while self.at < len(self._text) and not is_end(self._text[self.at]):
            self.at += 1
        return self._text[start : self.at]

    def _identifier(self) -> None:
        word = self._until(_is_terminator)
        is_bool = word in ("true", "false")
        self._nodes.append(Literal(word == "true") if is_bool else Identifier(word))

    def _number(self) -> None:
        start = self.at
        self.at += self._peek() in "+-"
        self._until(lambda letter: letter != "." and letter not in _DIGITS)
        word = self._text[start : self.at]
        number = int(word) if _INTEGER.fullmatch(word) and len(word) < 25 else None
        if number is not None and -_LARGEST <= number <= _LARGEST:
            self._nodes.append(Literal(number))
        elif _FLOAT.fullmatch(word):
            self._nodes.append(Literal(float(word)))
        else:
            raise JsonPathError(f"cannot parse number {word}")

    def _recursive(self) -> None:
        if self._nodes and isinstance(self._nodes[-1], Recursive):
            raise JsonPathError("invalid multiple recursive descent")
        self.at += 2
        self._nodes.append(Recursive())
        if _is_alphanumeric(self._peek()):
            self._field()

    def _field(self) -> None:
        """Up to where something else begins; a backslash hides what that would be."""
        start = self.at
        while self.at < len(self._text) and not _is_terminator(letter := self._text[self.at]):
            self.at += 2 if letter == "\\" else 1
        self.at = min(self.at, len(self._text))
        name = self._text[start : self.at]
        self._nodes.append(Wildcard() if name == "*" else Field(name.replace("\\", "")))

    def _quote(self, quote: str) -> None:
        start = self.at
        closing = _closing_quote(self._text, start + 1, quote)
        if closing < 0:
            raise JsonPathError("unterminated quoted string")
        self.at = closing + 1
        self._nodes.append(Literal(_unquoted(self._text[start : self.at])))

    def _array(self) -> None:
        start = self.at
        self._until(lambda letter: letter in "]\n")
        if self._peek() != "]":
            raise JsonPathError("unterminated array")
        self.at += 1
        inside = self._text[start + 1 : self.at - 1]
        members = inside.split(",")
        key = _DICT_KEY.fullmatch(inside)
        if len(members) > 1:
            actions = [_parse_action(f"[{member.strip(' ')}]") for member in members]
            self._nodes.append(Union(tuple(actions)))
        elif key is not None:
            self._nodes += _parse_action(f".{key[1]}")
        else:
            self._nodes.append(_array_of(":" if inside == "*" else inside))

    def _filter(self) -> None:
        self.at += 3
        start = self.at
        self.at = _closing_parenthesis(self._text, start)
        inside = self._text[start : self.at]
        self.at += 1
        if self._peek() != "]":
            raise JsonPathError("unclosed array expect ]")
        self.at += 1
        found = _COMPARISON.fullmatch(inside)
        if found is None:
            self._nodes.append(Filter(_parse_action(inside), (), "exists"))
        else:
            left, right = _parse_action(found[1]), _parse_action(found[3])
            self._nodes.append(Filter(left, right, found[2]))


def _closing_quote(text: str, at: int, quote: str) -> int:
    """Where the quote is that is not escaped, on the same line; -1 where there is none."""
    while at < len(text) and text[at] != "\n":
        if text[at] == quote and text[at - 1] != "\\":
            return at
        at += 1
    return -1


def _closing_parenthesis(text: str, at: int) -> int:
    """As client-go: behind the second quote of the first sort, where there is any quote."""
    quote, is_closed = "", False
    while at < len(text) and text[at] != "\n":
        letter = text[at]
        if letter in "'\"":
            if not quote:
                quote = letter
            elif text[at - 1] != "\\" and letter == quote:
                is_closed = True
        elif letter == ")" and bool(quote) == is_closed:
            return at
        at += 1
    raise JsonPathError("unterminated filter")


def _array_of(inside: str) -> Array:
    found = _SLICE.fullmatch(inside)
    if found is None:
        raise JsonPathError(f"invalid array index {inside}")
    numbers: list[int | None] = []
    for part in found.groups():
        digits = (part or "").removeprefix(":")
        if digits == "-" or len(digits) > 20 or abs(int(digits or "0")) > _LARGEST:
            raise JsonPathError(f"array index {digits} is not a number")
        numbers.append(int(digits) if digits else None)
    start, end, step = numbers
    return Array(start, end, step, is_index=found[2] is None)


def _unquoted(quoted: str) -> str:
    """As Go unquotes a string; either quote may be around it. Raises JsonPathError."""
    quote, body = quoted[0], quoted[1:-1]
    if "\\" not in body and quote not in body:
        return body
    out = bytearray()
    at = 0
    while at < len(body):
        if body[at] == "\\":
            code, at = _escape(body, at + 1, quote)
        else:
            code, at = (-1 if body[at] == quote else body[at].encode()), at + 1
        if code == -1:
            raise JsonPathError(f"unquote string {quoted} error invalid syntax")
        out += code if isinstance(code, bytes) else bytes([code])
    return out.decode(errors="replace")


def _escape(body: str, at: int, quote: str) -> tuple[int | bytes, int]:
    """What stands behind a backslash, and where it ends; -1: nothing that Go knows."""
    letter = body[at : at + 1]
    if letter in _SHORT and letter not in {"'", '"'} - {quote}:
        return _SHORT[letter], at + 1
    if letter in _LONG and letter:
        digits = body[at + 1 : at + 1 + _LONG[letter]]
        if re.fullmatch(f"[0-9a-fA-F]{{{_LONG[letter]}}}", digits):
            code = int(digits, 16)
            end = at + 1 + len(digits)
            if letter == "x":
                return code, end
            if code <= 0x10FFFF and not 0xD800 <= code < 0xE000:
                return chr(code).encode(), end
    elif re.fullmatch("[0-3][0-7]{2}", body[at : at + 3]):
        return int(body[at : at + 3], 8), at + 3
    return -1, at


def _is_alphanumeric(letter: str) -> bool:
    return letter != _END and (letter == "_" or letter.isalnum())


def _is_terminator(letter: str) -> bool:
    return letter in " \t\r\n.,[]$@{}"


def _named(letter: str) -> str:
    """As Go's %#U."""
    return f"U+{ord(letter):04X}" + (f" '{letter}'" if letter.isprintable() else "")
