"""Selectors: which objects a text or a LabelSelector means.

Job: parse label and field selectors, and compile them into questions about labels. Pure.
Invariant: a selector printed and parsed again asks the same question.
"""

from collections.abc import Callable
from dataclasses import field

from sampan.api.errors import value_text
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.rules.labels.questions import (
    Labels,
    Operator,
    Question,
    Requirement,
    go_integer,
    question_of,
)
from sampan.core.fast_dataclass import dataclass

_OBJECT_OPERATORS: dict[str, Operator] = {
    "In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!",
}  # fmt: skip
_SIGNS: dict[str, Operator] = {
    "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt", "in": "in", "notin": "notin",
}  # fmt: skip
_PUNCTUATION = ("!", "=", "==", "!=", ">", "<", "(", ")", ",")


class SelectorError(ValueError):
    """The text or object is no selector; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Every requirement must hold; none at all holds for everything."""

    requirements: tuple[Requirement, ...] = ()
    matches: Question = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", question_of(self.requirements))

    def __str__(self) -> str:
        return ",".join(
            str(requirement)
            for requirement in sorted(self.requirements, key=lambda requirement: requirement.key)
        )


@dataclass(frozen=True, slots=True)
class _Nothing(LabelSelector):
    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", lambda labels: False)


def parse_label_selector(text: str) -> LabelSelector:
    """`a=b,c!=d,e in (f,g),!h,i notin (j),k,l>5`; SelectorError where it is none."""
    return LabelSelector(tuple(_Parser(_words(text)).requirements()))


def from_object(selector: Obj | None) -> LabelSelector:
    """A metav1.LabelSelector: absent means nothing, empty means everything."""
    return _from_object(selector, lambda expression: _check(_expression(expression)))


def from_stored(selector: Obj | None) -> LabelSelector:
    """Likewise, of an object that was checked when it was written: of 15,000 expressions the loop
    has no time to look at each name and value once more."""
    return _from_object(selector, _expression)


def _from_object(
    selector: Obj | None, expression_of: Callable[[Obj], Requirement]
) -> LabelSelector:
    if selector is None:
        return NOTHING
    requirements = from_labels(selector.get("matchLabels") or {})
    requirements += map(expression_of, selector.get("matchExpressions") or ())
    return LabelSelector(tuple(requirements))


def _expression(expression: Obj) -> Requirement:
    operator = _OBJECT_OPERATORS.get(expression.get("operator") or "")
    if operator is None:
        raise SelectorError(
            f"{value_text(expression.get('operator') or '')} is not a valid label selector operator"
        )
    values = tuple(expression.get("values") or ())
    return Requirement(expression.get("key") or "", operator, values)


def from_labels(labels: Labels) -> list[Requirement]:
    """Equality with each label, in the order of their keys."""
    return [Requirement(key, "=", (labels[key],)) for key in sorted(labels)]


def match_labels(labels: Labels | None) -> LabelSelector:
    """The bare map of labels that Services and ReplicationControllers select by."""
    return LabelSelector(tuple(from_labels(labels or {})))


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    field: str
    equal: bool
    value: str


def parse_field_selector(text: str) -> list[FieldRequirement]:
    """`metadata.name=x,status.phase!=Running`; a backslash escapes , = and itself in values."""
    return [_field_term(term, text) for term in _field_terms(text) if term]


def _field_terms(text: str) -> list[str]:
    terms, start, escaped = [], 0, False
    for at, character in enumerate(text):
        if character == "," and not escaped:
            terms.append(text[start:at])
            start = at + 1
        escaped = character == "\\" and not escaped
    return [*terms, text[start:]]


def _field_term(term: str, text: str) -> FieldRequirement:
    for at in range(len(term)):
        for sign in ("!=", "==", "="):
            if term.startswith(sign, at):
                value = _unescape(term[at + len(sign) :])
                return FieldRequirement(term[:at], sign != "!=", value)
    raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")


def _unescape(value: str) -> str:
    if not any(character in value for character in "\\,="):
        return value
    out, escaped = "", False
    for character in value:
        if escaped:
            if character not in "\\,=":
                raise SelectorError(
                    f"invalid field selector: invalid escape sequence: \\{character}"
                )
            out += character
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in ",=":
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(character)}"
            )
        else:
            out += character
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return out


def escaped(value: str) -> str:
    """As a value of a field selector."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _check(one: Requirement) -> Requirement:
    if not names.label_key(one.key) and names.are_label_values(one.values):
        if not (miscounted := _count_complaints(one)):
            return one
        raise SelectorError(miscounted[0])
    problems = _key_problems("key", one.key)
    problems += _count_complaints(one)
    for index, value in enumerate(one.values):
        complaints = names.label_value(value)
        if complaints:
            where = f"values[{index}][{one.key}]: Invalid value: {value_text(value)}"
            problems.append(f"{where}: {'; '.join(complaints)}")
    if problems:
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return one


def _count_complaints(one: Requirement) -> list[str]:
    """How many values an operator takes, and of which kind."""
    match one.operator:
        case "in" | "notin" if not one.values:
            return [f"{_listed(one)}: for 'in', 'notin' operators, values set can't be empty"]
        case "exists" | "!" if one.values:
            return [f"{_listed(one)}: values set must be empty for exists and does not exist"]
        case "gt" | "lt" if len(one.values) != 1:
            return [f"{_listed(one)}: for 'Gt', 'Lt' operators, exactly one value is required"]
        case "gt" | "lt" if go_integer(one.values[0]) is None:
            first = f"values[0]: Invalid value: {value_text(one.values[0])}"
            return [f"{first}: for 'Gt', 'Lt' operators, the value must be an integer"]
    return []


def _listed(one: Requirement) -> str:
    return f"values: Invalid value: [{','.join(value_text(value) for value in one.values)}]"


def _key_problems(where: str, key: str) -> list[str]:
    complaints = names.label_key(key)
    if not complaints:
        return []
    return [f"{where}: Invalid value: {value_text(key)}: {'; '.join(complaints)}"]


def _words(text: str) -> list[str]:
    """Signs and everything between them; the end is the empty word."""
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        end = at + 1
        if text[at] in "=!(),<>":
            if text[at : at + 2] in _PUNCTUATION:
                end = at + 2
        else:
            while end < len(text) and text[end] not in "=!(),<>" and not text[end].isspace():
                end += 1
        found.append(text[at:end])
        at = end
    return [*found, ""]


class _Parser:
    """Upstream's grammar, word by word."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._peek() == "":
            return found
        if not self._at_key():
            raise SelectorError(
                f"found '{self._peek()}', expected: !, identifier, or 'end of string'"
            )
        while True:
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from error
            word = self._take()
            if word == "":
                return found
            if word != ",":
                raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
            if not self._at_key():
                raise SelectorError(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._take()
        key = self._take()
        if not _is_value(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        if problems := _key_problems("<nil>", key):  # as upstream, where a text has no path
            raise SelectorError(problems[0])
        if absent or self._peek() in ("", ","):
            return _check(Requirement(key, "!" if absent else "exists"))
        sign = self._take()
        operator = _SIGNS.get(sign)
        if operator is None:
            raise SelectorError(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in ("in", "notin") else (self._value(),)
        return _check(Requirement(key, operator, values))

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        word = self._take()
        if not _is_value(word):
            raise SelectorError(f"found '{word}', expected: identifier")
        return word

    def _values(self) -> tuple[str, ...]:
        opening = self._take()
        if opening != "(":
            raise SelectorError(f"found '{opening}' expected: '('")
        if self._peek() not in (",", ")") and not _is_value(self._peek()):
            raise SelectorError(f"found '{self._peek()}', expected: ',', ')' or identifier")
        values: list[str] = []
        while True:
            word = self._take()
            if _is_value(word):
                values.append(word)
                word = self._take()
            elif word in (",", ")"):
                values.append("")
            if word == ")":
                return tuple(sorted(set(values)))
            if word != ",":
                raise SelectorError(f"found '{word}', expected: ',' or ')'")

    def _at_key(self) -> bool:
        return self._peek() == "!" or _is_value(self._peek())

    def _peek(self) -> str:
        return self._words[self._at]

    def _take(self) -> str:
        word = self._words[self._at]
        self._at = min(self._at + 1, len(self._words) - 1)
        return word


def _is_value(word: str) -> bool:
    return bool(word) and word not in _PUNCTUATION


# Last, because making a selector compiles it.
EVERYTHING = LabelSelector()
NOTHING = _Nothing()
