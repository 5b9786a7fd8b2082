"""Regular expressions as RE2 reads them, run by Python's.

Job: translate RE2's syntax; refuse what RE2 has not (look-around, references back).
Invariant: a pattern that RE2 would refuse is refused here too.
"""

import functools
import re

_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7F", "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": "!-/:-@\\[-`{-~", "space": "\\t\\n\\v\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_TOKEN = re.compile(
    r"\\x\{([0-9a-fA-F]+)\}|\\Q(.*?)(?:\\E|$)|\\[pP](?:\{\^?\w+\}|\w)|\\(.)"
    r"|\[:(\^?)(\w+):\]|\(\?(P?<[A-Za-z_]\w*>|[a-zA-Z-]*[:)]|.)|(.)",
    re.DOTALL,
)
_ESCAPABLE = "dDwWsSbBAzCafntrv"
_FLAGS = frozenset("imsU-:)")
_UNICODE = {
    "L": "A-Za-z\\u00aa-\\u02ff\\u0370-\\u1fff\\u2c00-\\ud7ff", "Lu": "A-Z\\u00c0-\\u00de",
    "Ll": "a-z\\u00df-\\u00ff", "N": "0-9\\u00b2\\u00b3\\u00b9\\u0660-\\u0669", "Nd": "0-9",
}  # fmt: skip
MOST_PATTERNS = 512


class NotRegex(ValueError):
    """RE2 would not take it."""


@functools.lru_cache(maxsize=MOST_PATTERNS)
def compiled(pattern: str) -> re.Pattern[str]:
    """Raises NotRegex."""
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise NotRegex(f"error parsing regexp: {error}") from error


def _translated(pattern: str) -> str:
    made: list[str] = []
    inside = False  # of a class
    lines = False  # (?m): $ is the end of any line
    for token in _TOKEN.finditer(pattern):
        point, quoted, escaped, negated, posix, group, plain = token.groups()
        text = token.group()
        if point is not None:
            made.append(re.escape(chr(int(point, 16))))
        elif quoted is not None:
            made.append(re.escape(quoted))
        elif text[:2] in ("\\p", "\\P"):
            made.append(_unicode(text, inside))
        elif escaped is not None:
            made.append(_escape(escaped, inside))
        elif posix is not None:
            made.append(_posix(text, negated, posix, inside))
        elif group is not None and not inside:
            lines = lines or ("m" in group.partition("-")[0] and group[-1] in ":)")
            made.append(_group(group))
        else:
            inside, shown = _plain(plain if group is None else text, inside, lines, made)
            made.append(shown)
    return "".join(made)


def _plain(text: str, inside: bool, lines: bool, before: list[str]) -> tuple[bool, str]:
    if inside:
        opened = before[-1] in ("[", "[^")
        if text == "^" and before[-1] == "[":
            return True, text
        if text == "]" and not opened and before[-2:] != ["[", "^"]:
            return False, text
        return True, "\\" + text if text in "[]&~|" else text
    if text == "[":
        return True, text
    return False, "\\Z" if text == "$" and not lines else text


def _escape(escaped: str, inside: bool) -> str:
    if escaped == "z" and not inside:
        return "\\Z"
    if escaped == "C" and not inside:
        return "(?s:.)"
    if escaped.isdigit() and escaped != "0":
        raise NotRegex(f"error parsing regexp: invalid escape sequence: `\\{escaped}`")
    if escaped.isalpha() and escaped not in _ESCAPABLE and escaped != "x":
        raise NotRegex(f"error parsing regexp: invalid escape sequence: `\\{escaped}`")
    return f"\\{escaped}"


def _posix(text: str, negated: str, name: str, inside: bool) -> str:
    if not inside:
        return re.escape(text)
    if name not in _CLASSES or negated:
        raise NotRegex(f"error parsing regexp: invalid character class range: `{text}`")
    return _CLASSES[name]


def _unicode(text: str, inside: bool) -> str:
    name = text[2:].strip("{}")
    if name not in _UNICODE or (inside and text[1] == "P"):
        raise NotRegex(f"error parsing regexp: invalid character class range: `{text}`")
    if inside:
        return _UNICODE[name]
    return f"[{'^' if text[1] == 'P' else ''}{_UNICODE[name]}]"


def _group(group: str) -> str:
    if group.endswith(">"):
        return f"(?P<{group.removeprefix('P')[1:]}"
    if set(group) <= _FLAGS and "U" not in group:
        return f"(?{group}"
    raise NotRegex(f"error parsing regexp: invalid or unsupported Perl syntax: `(?{group}`")
