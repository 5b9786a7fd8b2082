"""Go's text/template, what a parsed template is made of.

Job: the nodes, and how each is written in messages. Pure.
"""

import math
from collections.abc import Sequence

from sampan.api.go_quoting import character, quoted
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    position: int
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Literal:
    """A bool, a string, a dot or nil; `word` says which."""

    position: int
    word: str  # bool string dot nil
    source: str
    value: bool | str | None = None

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True)
class Number:
    """A constant has no type before it is used: it is whatever it can be."""

    position: int
    source: str
    integer: int | None = None
    float: "float | None" = None
    complex: "complex | None" = None

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True)
class Identifier:
    position: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Field:
    position: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f".{name}" for name in self.names)


@dataclass(frozen=True, slots=True)
class Variable:
    position: int
    names: tuple[str, ...]  # `$x`, then fields of it

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True, slots=True)
class Chain:
    """Fields of what another term gives."""

    position: int
    node: "Term"
    names: tuple[str, ...]

    def __str__(self) -> str:
        return _in_parentheses(self.node) + "".join(f".{name}" for name in self.names)


@dataclass(frozen=True, slots=True)
class Command:
    position: int
    arguments: "tuple[Term, ...]"

    def __str__(self) -> str:
        return " ".join(_in_parentheses(argument) for argument in self.arguments)


@dataclass(frozen=True, slots=True)
class Pipe:
    position: int
    line: int
    declared: tuple[Variable, ...]
    assigns: bool
    commands: tuple[Command, ...]

    def __str__(self) -> str:
        head = ", ".join(map(str, self.declared))
        if head:
            head += " = " if self.assigns else " := "
        return head + " | ".join(map(str, self.commands))


@dataclass(frozen=True, slots=True)
class Action:
    position: int
    pipe: Pipe

    def __str__(self) -> str:
        return f"{{{{{self.pipe}}}}}"


@dataclass(frozen=True, slots=True)
class Branch:
    """if, with or range."""

    position: int
    word: str
    pipe: Pipe
    body: "Nodes"
    otherwise: "Nodes | None"

    def __str__(self) -> str:
        text = f"{{{{{self.word} {self.pipe}}}}}{''.join(map(str, self.body))}"
        if self.otherwise is not None:
            text += f"{{{{else}}}}{''.join(map(str, self.otherwise))}"
        return text + "{{end}}"


@dataclass(frozen=True, slots=True)
class Jump:
    """break or continue."""

    position: int
    word: str

    def __str__(self) -> str:
        return f"{{{{{self.word}}}}}"


@dataclass(frozen=True, slots=True)
class Call:
    """{{template "name" pipe}}."""

    position: int
    name: str
    pipe: Pipe | None

    def __str__(self) -> str:
        what = f" {self.pipe}" if self.pipe is not None else ""
        return f"{{{{template {quoted(self.name)}{what}}}}}"


Term = Literal | Number | Identifier | Field | Variable | Chain | Pipe
Node = Text | Action | Branch | Jump | Call
Nodes = Sequence[Node]


def _in_parentheses(node: object) -> str:
    return f"({node})" if isinstance(node, Pipe) else str(node)


def number(position: int, text: str, kind: str) -> Number:
    """Raises ValueError."""
    if kind == "char constant":
        code = character(text)
        return Number(position, text, code, float(code))
    if kind == "complex" or text.endswith("i"):
        value = complex(text.replace("_", "")[:-1] + "j")
        return _simple(position, text, value)
    whole = _integer(text)
    if whole is not None:
        if not -(2**63) <= whole < 2**64:
            raise ValueError(f"integer overflow: {quoted(text)}")
        return Number(position, text, whole, float(whole))
    decimal = _float(text)
    if decimal is None or math.isinf(decimal):
        raise ValueError(f"illegal number syntax: {quoted(text)}")
    if not any(letter in text for letter in ".eEpP"):
        raise ValueError(f"integer overflow: {quoted(text)}")
    is_whole = decimal.is_integer() and abs(decimal) < 2**63
    return Number(position, text, int(decimal) if is_whole else None, decimal)


def _simple(position: int, text: str, value: complex) -> Number:
    if value.imag:
        return Number(position, text, None, None, value)
    real = value.real
    whole = int(real) if real.is_integer() else None
    return Number(position, text, whole, real, value)


def _integer(text: str) -> int | None:
    body = text.lstrip("+-")
    try:
        if body[:1] == "0" and body[1:2] in "01234567_" and len(body) > 1:
            value = int(body.replace("_", ""), 8)
        else:
            value = int(body, 0)
    except ValueError:
        return None
    return -value if text.startswith("-") else value


def _float(text: str) -> float | None:
    plain = text.replace("_", "")
    try:
        return float.fromhex(plain) if "x" in plain.lower() else float(plain)
    except (ValueError, OverflowError):
        return None
