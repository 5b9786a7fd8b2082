"""Functions on texts beyond those of the standard.

Job: cel-go's strings extension. Positions are of characters, not of bytes.
Invariant: a position outside the text is an error, not a guess.
"""

from sampan.api.cel.language import cost
from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.values import Value
from sampan.api.cel.libraries.formatting import format_text, quote

STRINGS = Library("strings")
_SPACE = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
_SPACE += "\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def _outside(position: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {position}")


@STRINGS.member("string", "charAt", "int", to="string")
def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _outside(position)
    return text[position : position + 1]


@STRINGS.member("string", "indexOf", "string", to="int", cost=cost.traversal_cost)
@STRINGS.member("string", "indexOf", "string", "int", to="int", cost=cost.traversal_cost)
def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if not 0 <= start <= len(text):
        raise _outside(start)
    return text.find(part, start)


@STRINGS.member("string", "lastIndexOf", "string", to="int", cost=cost.traversal_cost)
@STRINGS.member("string", "lastIndexOf", "string", "int", to="int", cost=cost.traversal_cost)
def _last_index_of(text: str, part: str, *last: int) -> int:
    if not part:
        return last[0] if last else len(text)
    if not last:
        return text.rfind(part)
    if not 0 <= last[0] < len(text):
        raise _outside(last[0])
    return text.rfind(part, 0, last[0] + len(part))


@STRINGS.member("list(string)", "join", to="string", cost=cost.join)
@STRINGS.member("list(string)", "join", "string", to="string", cost=cost.join)
def _join(parts: list[Value], between: str = "") -> str:
    if not all(isinstance(part, str) for part in parts):
        raise EvaluationError("no such overload")
    return between.join(parts)


@STRINGS.member("string", "lowerAscii", to="string", cost=cost.first_read)
def _lower(text: str) -> str:
    return text.translate(_LOWER)


@STRINGS.member("string", "upperAscii", to="string", cost=cost.first_read)
def _upper(text: str) -> str:
    return text.translate(_UPPER)


@STRINGS.member("string", "replace", "string", "string", to="string", cost=cost.replace)
@STRINGS.member("string", "replace", "string", "string", "int", to="string", cost=cost.replace)
def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return text.replace(old, new, most)


@STRINGS.member("string", "split", "string", to="list(string)", cost=cost.first_read_twice)
@STRINGS.member("string", "split", "string", "int", to="list(string)", cost=cost.first_read_twice)
def _split(text: str, by: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if by:
        return text.split(by, -1 if most < 0 else most - 1)
    if most < 0 or most >= len(text):
        return list(text)
    return [*text[: most - 1], text[most - 1 :]]


@STRINGS.member("string", "substring", "int", to="string", cost=cost.first_read)
@STRINGS.member("string", "substring", "int", "int", to="string", cost=cost.first_read)
def _substring(text: str, start: int, *stop: int) -> str:
    end = stop[0] if stop else len(text)
    if not 0 <= start <= len(text):
        raise _outside(start)
    if stop and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= end <= len(text):
        raise _outside(end)
    return text[start:end]


@STRINGS.member("string", "trim", to="string", cost=cost.first_read)
def _trim(text: str) -> str:
    return text.strip(_SPACE)


@STRINGS.member("string", "format", "list(dyn)", to="string", cost=cost.first_read)
def _format(template: str, values: list[Value]) -> str:
    return format_text(template, values)


@STRINGS.function("strings.quote", "string", to="string", cost=cost.first_read)
def _quote(text: str) -> str:
    return quote(text)
