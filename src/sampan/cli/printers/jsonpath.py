"""JSONPath templates of kubectl: `{.items[*].metadata.name}`, `{range}…{end}`, filters, literals.

Job: parse a template once; evaluate it over JSON data.
Invariant: a path that leads nowhere gives nothing, unless missing keys were declared errors.
"""

import re
from typing import Any

from sampan.cli.errors import CliError
from sampan.core.fast_dataclass import dataclass


class JsonPathError(CliError):
    """The template cannot be parsed or does not fit the data."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """What only fails when the template is used."""

    why: str


@dataclass(frozen=True, slots=True)
class Path:
    steps: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Range:
    path: Path
    body: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Field:
    name: str


@dataclass(frozen=True, slots=True)
class Descend:
    """`..name`: at any depth."""


@dataclass(frozen=True, slots=True)
class Wildcard:
    pass


@dataclass(frozen=True, slots=True)
class Slice:
    start: int | None
    end: int | None
    step: int | None
    is_index: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    members: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    left: Path | Text | Any
    operator: str
    right: Any


def relax(expression: str) -> str:
    """`metadata.name`, `.metadata.name` and `{.metadata.name}` mean the same."""
    if not expression:
        return expression
    match = re.fullmatch(r"\{\.?([^{}]+)\}|\.?([^{}]+)", expression)
    if match is None:
        raise CliError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or "
            "'{name1.name2}' or '{.name1.name2}'"
        )
    return "{." + (match.group(1) or match.group(2)) + "}"


class Template:
    def __init__(self, text: str, *, allow_missing: bool = True) -> None:
        self.text = text
        self._allow_missing = allow_missing
        self._nodes, rest = _parse(text, 0, in_range=False)
        assert rest == len(text)

    def render(self, data: Any) -> str:
        return "".join(
            value_text(value) if index == 0 else " " + value_text(value)
            for values in self.results(data)
            for index, value in enumerate(values)
        )

    def results(self, data: Any) -> list[list[Any]]:
        """One list of values per node of the template; text is a list of itself."""
        return self._results(self._nodes, data, data)

    def values(self, data: Any) -> list[Any]:
        return [value for values in self.results(data) for value in values]

    def _results(self, nodes: tuple[Any, ...], data: Any, root: Any) -> list[list[Any]]:
        out: list[list[Any]] = []
        for node in nodes:
            if isinstance(node, Text):
                out.append([_Raw(node.text)])
            elif isinstance(node, Failure):
                raise JsonPathError(node.why)
            elif isinstance(node, Range):
                for item in self._walk(node.path, data, root):
                    out += self._results(node.body, item, root)
            else:
                out.append(self._walk(node, data, root))
        return out

    def _walk(self, path: Path, data: Any, root: Any) -> list[Any]:
        current = [data]
        for step in path.steps:
            if step == "$":
                current = [root]
            elif step != "@":
                current = self._step(step, current, root)
        return current

    def _step(self, step: Any, values: list[Any], root: Any) -> list[Any]:
        match step:
            case Field(name):
                return self._field(name, values)
            case Descend():
                return [inner for value in values for inner in _descendants(value)]
            case Wildcard():
                return [inner for value in values for inner in _children(value)]
            case Slice():
                return [inner for value in values for inner in self._slice(step, value)]
            case Union(members):
                return self._members(members, values, root)
            case Filter():
                return self._matches(step, values, root)
            case str():
                return [step]
            case _:
                raise JsonPathError(f"unknown step {step!r}")

    def _members(self, members: tuple[Any, ...], values: list[Any], root: Any) -> list[Any]:
        return [
            inner
            for member in members
            for value in values
            for inner in self._walk(member, value, root)
        ]

    def _matches(self, step: Filter, values: list[Any], root: Any) -> list[Any]:
        return [
            item
            for value in values
            for item in (value if isinstance(value, list) else _children(value))
            if self._is_match(step, item, root)
        ]

    def _field(self, name: str, values: list[Any]) -> list[Any]:
        found = [value[name] for value in values if isinstance(value, dict) and name in value]
        if not found and values and not self._allow_missing:
            raise JsonPathError(f"{name} is not found")
        return found

    def _slice(self, step: Slice, value: Any) -> list[Any]:
        if not isinstance(value, list):
            if value is None:
                return []
            raise JsonPathError(f"{go_type(value)} is not array or slice")
        size = len(value)
        if step.is_index:
            at = step.start if step.start is not None else 0
            at = at + size if at < 0 else at
            if not 0 <= at < size:
                if self._allow_missing and size == 0:
                    return []
                raise JsonPathError(f"array index out of bounds: index {step.start}, length {size}")
            return [value[at]]
        return value[_bounds(step, size)]

    def _is_match(self, step: Filter, item: Any, root: Any) -> bool:
        left = self._side(step.left, item, root)
        if step.operator == "exists":
            return bool(left)
        right = self._side(step.right, item, root)
        if not left or not right:
            return False
        one, two = left[0], right[0]
        try:
            return bool(_OPERATORS[step.operator](one, two))
        except TypeError:
            return False

    def _side(self, side: Any, item: Any, root: Any) -> list[Any]:
        if not isinstance(side, Path):
            return [side]
        quiet = Template.__new__(Template)
        quiet._allow_missing = True
        return quiet._walk(side, item, root)


class _Raw(str):
    """Literal text of the template: printed as it is."""


_OPERATORS = {
    "==": lambda entry, two: entry == two,
    "!=": lambda entry, two: entry != two,
    "<": lambda entry, two: entry < two,
    ">": lambda entry, two: entry > two,
    "<=": lambda entry, two: entry <= two,
    ">=": lambda entry, two: entry >= two,
}


def value_text(value: Any) -> str:
    """Text as it is, numbers as numbers, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, (dict, list)):
        from sampan.cli.printers.json_text import compact

        return compact(value, ordered=False)
    return str(value)


def go_float(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e21 else repr(value)


def go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    return "int64" if isinstance(value, int) else "float64"


def _bounds(step: Slice, size: int) -> slice:
    start = step.start if step.start is not None else 0
    end = step.end if step.end is not None else size
    start = start + size if start < 0 else start
    end = end + size if end < 0 else min(end, size)
    if step.start is not None and step.start >= size:
        raise JsonPathError(f"array index out of bounds: index {step.start}, length {size}")
    if start > end:
        raise JsonPathError(f"starting index {start} is greater than ending index {end}")
    return slice(start, end, step.step or 1)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return list(value) if isinstance(value, list) else []


def _descendants(value: Any) -> list[Any]:
    found = [value]
    for child in _children(value):
        if isinstance(child, (dict, list)):
            found += _descendants(child)
    return found


def _parse(text: str, at: int, *, in_range: bool) -> tuple[tuple[Any, ...], int]:
    nodes: list[Any] = []
    while at < len(text):
        opening = text.find("{", at)
        if opening < 0:
            nodes.append(Text(text[at:]))
            at = len(text)
            break
        if opening > at:
            nodes.append(Text(text[at:opening]))
        inner, at = _action(text, opening)
        word = inner.strip()
        if word == "end":
            if in_range:
                return tuple(nodes), at
            nodes.append(Failure("not in range, nothing to end"))
            continue
        if word.startswith("range") and (len(word) == 5 or not word[5].isalnum()):
            body, at = _parse(text, at, in_range=True)
            nodes.append(Range(_path(word[5:].strip()), body))
        else:
            nodes += _expressions(word)
    return tuple(nodes), at


def _action(text: str, opening: int) -> tuple[str, int]:
    """What is between `{` and its `}`; quotes hide braces."""
    at, quote = opening + 1, ""
    while at < len(text):
        letter = text[at]
        if quote:
            if letter == "\\":
                at += 1
            elif letter == quote:
                quote = ""
        elif letter in "'\"":
            quote = letter
        elif letter == "}":
            return text[opening + 1 : at], at + 1
        at += 1
    raise JsonPathError("unclosed action")


def _expressions(word: str) -> list[Any]:
    if not word:
        return [Path(())]  # `{}` is all of it
    nodes: list[Any] = []
    for part in _split(word, " "):
        if part[:1] in "'\"":
            nodes.append(Text(_unquote(part)))
        elif part in ("true", "false") or re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", part):
            nodes.append(Text(part))
        elif re.fullmatch(r"[A-Za-z_]\w*", part):
            nodes.append(Failure(f"unrecognized identifier {part}"))
        else:
            nodes.append(_path(part))
    return nodes


def _unquote(part: str) -> str:
    if len(part) < 2 or part[-1] != part[0]:
        raise JsonPathError("unterminated quoted string")
    body = part[1:-1]
    body = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), body)
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": "\r"}.get(m[1], m[1]), body)


def _split(word: str, separator: str) -> list[str]:
    """At separators that are not inside quotes, brackets or parentheses."""
    parts, depth, quote, start, at = [], 0, "", 0, 0
    while at < len(word):
        letter = word[at]
        if quote:
            if letter == "\\":
                at += 1
            elif letter == quote:
                quote = ""
        elif letter in "'\"":
            quote = letter
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif depth == 0 and word.startswith(separator, at):
            parts.append(word[start:at])
            start = at + len(separator)
        at += 1
    parts.append(word[start:])
    return [part for part in parts if part]


def _path(text: str) -> Path:
    steps: list[Any] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter in "$@":
            steps.append(letter)
            at += 1
        elif text.startswith("..", at):
            steps.append(Descend())
            at += 2
            name, at = _name(text, at)
            if name:
                steps.append(Wildcard() if name == "*" else Field(name))
        elif letter == "[":
            closing = _closing(text, at)
            steps.append(_bracket(text[at + 1 : closing]))
            at = closing + 1
        elif letter == "." or (at == 0 and (letter.isalnum() or letter in "*_-/\\")):
            name, at = _name(text, at + 1 if letter == "." else at)
            if name:
                steps.append(Wildcard() if name == "*" else Field(name))
        else:
            raise JsonPathError(f"unrecognized character in action: U+{ord(letter):04X} '{letter}'")
    return Path(tuple(steps))


def _name(text: str, at: int) -> tuple[str, int]:
    out = []
    while at < len(text) and text[at] not in ".[ \t|}":
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        out.append(text[at])
        at += 1
    return "".join(out), at


def _closing(text: str, at: int) -> int:
    depth, quote = 0, ""
    for index in range(at, len(text)):
        letter = text[index]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
            if depth == 0:
                return index
    raise JsonPathError("unterminated array")


def _bracket(inside: str) -> Any:
    text = inside.strip()
    if text == "*":
        return Wildcard()
    if text.startswith("?(") and text.endswith(")"):
        return _filter(text[2:-1].strip())
    if "," in text and not re.fullmatch(r"'[^']*'|\"[^\"]*\"", text):
        members = [_bracket(part) for part in _split(text, ",")]
        return Union(tuple(Path((member,)) for member in members))
    if text[:1] in "'\"":
        # As kubectl: what is in quotes is a path, and a dot in a name needs its backslash.
        return Union((_path("." + text[1:-1]),))
    match = re.fullmatch(r"(-?[0-9]*)(:(-?[0-9]*))?(:(-?[0-9]*))?", text)
    if match is None:
        raise JsonPathError(f"invalid array index {text}")
    numbers = [int(part) if part else None for part in (match[1], match[3], match[5])]
    if match[2] is None:
        return Slice(numbers[0], None, None, True)
    return Slice(numbers[0], numbers[1], numbers[2])


def _filter(text: str) -> Filter:
    odd = re.search(r"[~&|](?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)", text)
    if odd is not None:
        letter = odd.group()
        raise JsonPathError(f"unrecognized character in action: U+{ord(letter):04X} '{letter}'")
    match = re.search(r"(==|!=|<=|>=|<|>)(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)", text)
    if match is None:
        return Filter(_operand(text), "exists", None)
    return Filter(
        _operand(text[: match.start()].strip()), match[1], _operand(text[match.end() :].strip())
    )


def _operand(text: str) -> Any:
    if text[:1] in "'\"":
        return _unquote(text)
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    if re.fullmatch(r"-?[0-9]+\.[0-9]+", text):
        return float(text)
    return _path(text)
