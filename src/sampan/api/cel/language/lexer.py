"""Lexer.

Job: text → tokens, with string and number literals already read.
Invariant: every token knows the character it starts at.
"""

import re
from typing import Any

from sampan.api.cel.language.errors import Issue
from sampan.api.cel.language.values import INT_MAX, INT_MIN, UINT_MAX, Uint
from sampan.core.digits import whole_number
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

MOST_CHARACTERS = 100_000

_TOKEN = lazy_pattern(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
  | (?P<text>[bBrR]{0,2}(?:'''|\"\"\"|'|\"))
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<mark>&&|\|\||<=|>=|==|!=|[-+*/%<>!?:.,(){}\[\]])
    """,
    re.VERBOSE,
)
_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
_ESCAPE = lazy_pattern(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # name, literal, mark, end
    text: str
    at: int
    value: Any = None


class Unreadable(Exception):
    """No token starts here."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.issue = Issue(at, message)


def tokens_of(source: str) -> list[Token]:
    """Raises Unreadable."""
    if len(source) > MOST_CHARACTERS:
        size = f"size: {len(source)}, limit {MOST_CHARACTERS}"
        raise Unreadable(0, f"expression code point size exceeds limit: {size}")
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise Unreadable(at, f"Syntax error: token recognition error at: '{source[at]}'")
        kind, text = match.lastgroup or "", match.group()
        if kind == "text":
            token = _text_literal(source, at, text)
            found.append(token)
            at += len(token.text)
            continue
        if kind != "space":
            found.append(_plain(kind, text, at))
        at = match.end()
    return [*found, Token("end", "<EOF>", len(source))]


def _plain(kind: str, text: str, at: int) -> Token:
    if kind == "int":
        number = int(text, 0) if text.startswith("0x") else whole_number(text)
        return Token("literal", text, at, number)
    if kind == "uint":
        number = int(text[:-1], 16) if text.startswith("0x") else whole_number(text[:-1])
        if number > UINT_MAX:
            raise Unreadable(at, "invalid uint literal")
        return Token("literal", text, at, Uint(number))
    if kind == "float":
        return Token("literal", text, at, float(text))
    if kind == "name" and text in ("true", "false", "null"):
        return Token("literal", text, at, {"true": True, "false": False}.get(text))
    return Token("mark" if kind == "name" and text == "in" else kind, text, at)


def checked_int(number: int, at: int) -> int:
    """A whole number's size is known only with its sign."""
    if not INT_MIN <= number <= INT_MAX:
        raise Unreadable(at, "invalid int literal")
    return number


def _text_literal(source: str, at: int, opening: str) -> Token:
    prefix = opening.rstrip("'\"").lower()
    quote = opening[len(prefix) :]
    if len(set(prefix)) != len(prefix):
        raise Unreadable(at, f"Syntax error: token recognition error at: '{opening}'")
    start = at + len(opening)
    end = _end_of(source, start, quote, raw="r" in prefix)
    if end < 0:
        shown = source[at : source.find("\n", at)] if "\n" in source[at:] else source[at:]
        raise Unreadable(at, f"Syntax error: token recognition error at: '{shown}'")
    body = source[start:end].replace("\r\n", "\n").replace("\r", "\n")
    text = source[at : end + len(quote)]
    if "r" in prefix:
        return Token("literal", text, at, body.encode() if "b" in prefix else body)
    value = _bytes_of(body, at) if "b" in prefix else _string_of(body, at)
    return Token("literal", text, at, value)


def _end_of(source: str, at: int, quote: str, raw: bool) -> int:
    while at < len(source):
        if source.startswith(quote, at):
            return at
        if source[at] == "\n" and len(quote) == 1:
            return -1
        at += 2 if source[at] == "\\" and not raw else 1
    return -1


def _string_of(body: str, at: int) -> str:
    def character(match: re.Match[str]) -> str:
        simple, hexadecimal, short, long, octal = match.groups()
        if simple:
            return _ESCAPES[simple]
        code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise Unreadable(at, "invalid unicode code point")
        return chr(code)

    _refuse_unknown(body, at)
    return _ESCAPE.sub(character, body)


def _bytes_of(body: str, at: int) -> bytes:
    _refuse_unknown(body, at)
    parts: list[bytes] = []
    last = 0
    for match in _ESCAPE.finditer(body):
        simple, hexadecimal, short, long, octal = match.groups()
        if short or long:
            raise Unreadable(at, "unable to unescape string")
        parts.append(body[last : match.start()].encode())
        code = ord(_ESCAPES[simple]) if simple else int(octal, 8) if octal else int(hexadecimal, 16)
        parts.append(bytes([code]))
        last = match.end()
    return b"".join([*parts, body[last:].encode()])


def _refuse_unknown(body: str, at: int) -> None:
    """A backslash that starts no escape."""
    if "\\" in _ESCAPE.sub("", body):
        raise Unreadable(at, "unable to unescape string")
