"""Go's quoted strings: strconv's Quote and Unquote, and what encoding/json escapes besides.

Job: text to a Go literal and back. Pure.
"""

_NAMED = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\",
}  # fmt: skip
_SHORT = {value: f"\\{name}" for name, value in _NAMED.items()}
_SIZES = {"x": 2, "u": 4, "U": 8}

_ESCAPED = (
    ("<", "\\u003c"),
    (">", "\\u003e"),
    ("&", "\\u0026"),
    ("\u2028", "\\u2028"),
    ("\u2029", "\\u2029"),
)


def quoted(text: str, quote: str = '"', *, ascii_only: bool = False) -> str:
    """As %q, and with `ascii_only` as %+q."""
    return quote + "".join(_escaped(letter, quote, ascii_only) for letter in text) + quote


def _escaped(letter: str, quote: str, ascii_only: bool) -> str:
    code = ord(letter)
    if letter in (quote, "\\"):
        return f"\\{letter}"
    if letter in _SHORT:
        return _SHORT[letter]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if letter.isprintable() and (code < 0x80 or not ascii_only):
        return letter
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def unquoted(literal: str) -> str:
    """Of a string in quotes or back quotes. Raises ValueError."""
    if literal.startswith("`"):
        return literal[1:-1].replace("\r", "")
    text, at = _unescaped(literal, 1, literal[0])
    if at != len(literal) - 1:
        raise ValueError("invalid syntax")
    return text


def character(literal: str) -> int:
    """Of a character constant: 'a', '\\n', '\\x41'. Raises ValueError."""
    text, at = _unescaped(literal, 1, "'", most=1)
    if not text:
        raise ValueError("invalid syntax")
    if literal[at:] != "'":
        raise ValueError(f"malformed character constant: {literal}")
    return ord(text)


def _unescaped(literal: str, at: int, quote: str, most: int = 1 << 30) -> tuple[str, int]:
    """From `at` to the closing quote, which is not taken."""
    raw = bytearray()
    count = 0
    while at < len(literal) and literal[at] != quote and count < most:
        count += 1
        if literal[at] != "\\":
            raw += literal[at].encode()
            at += 1
            continue
        kind = literal[at + 1 : at + 2]
        at += 2
        if kind in _SIZES:
            digits = literal[at : at + _SIZES[kind]]
            code = _number(digits, 16, _SIZES[kind])
            raw += bytes([code]) if kind == "x" and most > 1 else _rune(code)
            at += _SIZES[kind]
        elif kind and kind in "01234567":
            code = _number(literal[at - 1 : at + 2], 8, 3)
            if code > 255:
                raise ValueError("invalid syntax")
            raw += bytes([code]) if most > 1 else _rune(code)
            at += 2
        elif kind == quote or kind in _NAMED:
            raw += _NAMED.get(kind, kind).encode()
        else:
            raise ValueError("invalid syntax")
    return raw.decode(errors="surrogateescape"), at


def _number(digits: str, base: int, size: int) -> int:
    if len(digits) != size:
        raise ValueError("invalid syntax")
    try:
        return int(digits, base)
    except ValueError as error:
        raise ValueError("invalid syntax") from error


def _rune(code: int) -> bytes:
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError("invalid syntax")
    return chr(code).encode()


def escape_html(text: str) -> str:
    for letter, code in _ESCAPED:
        text = text.replace(letter, code)
    return text
