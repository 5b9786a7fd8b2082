"""JSON as Go reads it: what it takes, and what it says of what it does not take.

Job: bytes → data, as encoding/json reads it; why a text is no JSON, in Go's words. Pure.
Invariant: what the fast reader takes, it reads; what only Go takes is read here: single halves of
    surrogate pairs and bytes that are no UTF-8 become U+FFFD.
"""

import json
import math
from typing import Any

import orjson

from sampan.core.patterns import lazy_pattern

_END = "unexpected end of JSON input"
# Where a space may stand, which Go tries at the end of the text.
_SPACED = ("looking", "after object", "after array", "after top", "in string literal")
_MOST_LEVELS = 10_000
_SPACE = lazy_pattern(rb"[ \t\r\n]*")
_STRING = lazy_pattern(rb'"(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_NUMBER = lazy_pattern(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DIGITS = b"0123456789"
_HALVES = lazy_pattern("[\ud800-\udfff]")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def loads(data: bytes) -> Any:
    """Raises ValueError, in Go's words."""
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    wrong = complaint(data)
    if wrong:
        raise ValueError(wrong)
    try:
        text = data.decode(errors="surrogateescape")
        return _with_replaced_halves(json.loads(text, parse_float=_finite))
    except RecursionError as error:
        raise ValueError("exceeded max depth") from error


def complaint(data: bytes) -> str:
    """Why it is no JSON; empty where it is."""
    return _Scan(data).complaint()


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


def _with_replaced_halves(value: Any) -> Any:
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        return [_with_replaced_halves(item) for item in value]
    if isinstance(value, dict):
        return {_with_replaced_halves(key): _with_replaced_halves(v) for key, v in value.items()}
    return value


class _Scan:
    """One text, from its first byte to the one that Go refuses."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._open: list[bytes] = []  # of which brackets we are inside

    def complaint(self) -> str:
        wrong = self._value()
        while not wrong and self._open:
            wrong = self._after_value()
        return wrong or ("" if not self._next() else self._invalid("after top-level value"))

    def _next(self) -> bytes:
        """The next byte that is no space; empty at the end."""
        space = _SPACE.match(self._data, self._at)
        self._at = space.end() if space else self._at
        return self._data[self._at : self._at + 1]

    def _value(self) -> str:
        """A scalar, or the beginning of a list or an object; up to its first scalar."""
        while True:
            first = self._next()
            if first == b'"':
                return self._string()
            if first and first in b"-0123456789":
                return self._number()
            if first in (b"t", b"f", b"n"):
                return self._literal({b"t": "true", b"f": "false", b"n": "null"}[first])
            if first not in (b"{", b"["):
                return self._invalid("looking for beginning of value")
            self._at += 1
            self._open.append(first)
            if len(self._open) > _MOST_LEVELS:
                return "exceeded max depth"
            if self._next() == (b"}" if first == b"{" else b"]"):
                self._close()
                return ""
            if first == b"{":
                wrong = self._key()
                if wrong:
                    return wrong

    def _after_value(self) -> str:
        inside = self._open[-1]
        found = self._next()
        if found == (b"}" if inside == b"{" else b"]"):
            self._close()
            return ""
        if found != b",":
            place = "after object key:value pair" if inside == b"{" else "after array element"
            return self._invalid(place)
        self._at += 1
        return (self._key() if inside == b"{" else "") or self._value()

    def _close(self) -> None:
        self._at += 1
        self._open.pop()

    def _key(self) -> str:
        if self._next() != b'"':
            return self._invalid("looking for beginning of object key string")
        wrong = self._string()
        if wrong:
            return wrong
        if self._next() != b":":
            return self._invalid("after object key")
        self._at += 1
        return ""

    def _string(self) -> str:
        good = _STRING.match(self._data, self._at)
        assert good is not None
        self._at = good.end()
        last = self._data[self._at : self._at + 1]
        if last == b'"':
            self._at += 1
            return ""
        if last != b"\\":
            return self._invalid("in string literal")
        self._at += 1
        if self._data[self._at : self._at + 1] != b"u":
            return self._invalid("in string escape code")
        self._at += 1
        while self._data[self._at : self._at + 1] in {*map(bytes, zip(b"0123456789abcdefABCDEF"))}:
            self._at += 1
        return self._invalid("in \\u hexadecimal character escape")

    def _number(self) -> str:
        good = _NUMBER.match(self._data, self._at)
        if good is None:  # a minus alone
            self._at += 1
            return self._invalid("in numeric literal")
        self._at = good.end()
        here, text = self._data[self._at : self._at + 1], good[0]
        if here == b"." and b"." not in text and b"e" not in text.lower():
            self._at += 1
            return self._invalid("after decimal point in numeric literal")
        if here in (b"e", b"E") and b"e" not in text.lower():
            self._at += 1
            if self._data[self._at : self._at + 1] in (b"+", b"-"):
                self._at += 1
            return self._invalid("in exponent of numeric literal")
        return ""

    def _literal(self, word: str) -> str:
        for letter in word:
            if self._data[self._at : self._at + 1] != letter.encode():
                return self._invalid(f"in literal {word} (expecting '{letter}')")
            self._at += 1
        return ""

    def _invalid(self, place: str) -> str:
        found = self._data[self._at : self._at + 1]
        if not found and place.startswith(_SPACED):
            return _END
        found = found or b" "
        return f"invalid character {_quoted(found)} {place}"


def _quoted(byte: bytes) -> str:
    """As Go shows a byte: as the letter with that number."""
    letter = byte.decode("latin-1")
    if letter == "'":
        return "'\\''"
    if letter == '"':
        return "'\"'"
    known = {"\\": "\\\\", "\x07": "\\a", "\x0b": "\\v", **_SHORT}
    known.pop('"')
    if letter in known:
        return f"'{known[letter]}'"
    return f"'{letter}'" if letter.isprintable() else f"'\\{_code(letter)}'"


def _code(letter: str) -> str:
    number = ord(letter)
    return f"x{number:02x}" if number < 0x80 else f"u{number:04x}"
