"""-o go-template: the part of Go's text/template that people use with kubectl.

Job: fields, range, if, with, variables, pipelines, and the functions of FUNCTIONS.
Invariant: what is not here is refused by name, never printed as something else.
"""

import re
from typing import Any

from sampan.cli.errors import CliError
from sampan.cli.printers.custom_columns import go_text
from sampan.core.fast_dataclass import dataclass

_ACTION = re.compile(r"\{\{(-\s)?(.*?)(\s-)?\}\}", re.S)
_TOKEN = re.compile(
    r'\s*("(?:\\.|[^"\\])*"|`[^`]*`|:=|=|\||\(|\)|,|\$\w*(?:\.\w+)*|(?:\.[\w-]+)+|\.|-?\d+(?:\.\d+)?|\w+)'
)


class TemplateError(CliError):
    """The template cannot be parsed or does not fit the data."""


@dataclass(frozen=True, slots=True)
class Block:
    keyword: str
    expression: tuple[str, ...]
    body: tuple[Any, ...]
    otherwise: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Show:
    expression: tuple[str, ...]


_MISSING = object()


class Template:
    def __init__(self, text: str, *, allow_missing: bool = True) -> None:
        self.text, self._allow_missing = text, allow_missing
        self._parts = _split(text)
        self._at = 0
        self._nodes, ended_by = self._block(())
        if ended_by:
            raise TemplateError(
                f"error parsing template {text}, template: output:1: unexpected {ended_by}"
            )

    def render(self, data: Any) -> str:
        try:
            return self._render(self._nodes, data, {"$": data})
        except MissingKey as error:
            from sampan.cli.printers.json_text import compact

            # As kubectl: what helps to find the mistake goes to standard output.
            error.output = (
                f"Error executing template: {error.why}. Printing more information for debugging "
                f"the template:\n\ttemplate was:\n\t\t{self.text}\n\traw data was:\n\t\t"
                f"{compact(data, ordered=False)}\n\tobject given to template engine was:\n\t\t"
                f"{go_text(data)}\n\n"
            )
            raise

    def _block(self, ends: tuple[str, ...]) -> tuple[tuple[Any, ...], str | Block]:
        """Nodes up to one of `ends`, and which it was; an `else if` comes as its own block."""
        nodes: list[Any] = []
        while self._at < len(self._parts):
            part = self._parts[self._at]
            self._at += 1
            if isinstance(part, str):
                nodes.append(part)
                continue
            word = part[0] if part else ""
            if word in ("end", "else"):
                if word not in ends:
                    return tuple(nodes), f"{{{{{word}}}}}"
                if word == "else" and len(part) > 1:
                    return tuple(nodes), self._keyword(part[1:])
                return tuple(nodes), word
            if word in ("range", "if", "with"):
                nodes.append(self._keyword(part))
            elif word.startswith("/*") or not part:
                continue
            else:
                nodes.append(Show(tuple(part)))
        if ends:
            raise TemplateError(
                f"error parsing template {self.text}, template: output:1: unexpected EOF"
            )
        return tuple(nodes), ""

    def _keyword(self, part: Any) -> Block:
        body, ended = self._block(("end", "else"))
        otherwise: tuple[Any, ...] = ()
        if isinstance(ended, Block):
            otherwise = (ended,)
        elif ended == "else":
            otherwise, _ = self._block(("end",))
        return Block(part[0], tuple(part[1:]), body, otherwise)

    def _render(self, nodes: tuple[Any, ...], dot: Any, names: dict[str, Any]) -> str:
        out = []
        for node in nodes:
            if isinstance(node, str):
                out.append(node)
            elif isinstance(node, Show):
                out.append(self._shown(node, dot, names))
            else:
                out.append(self._control(node, dot, names))
        return "".join(out)

    def _shown(self, node: Show, dot: Any, names: dict[str, Any]) -> str:
        tokens = list(node.expression)
        if len(tokens) > 2 and tokens[0].startswith("$") and tokens[1] in (":=", "="):
            names[tokens[0]] = self._pipeline(tokens[2:], dot, names)
            return ""
        value = self._pipeline(tokens, dot, names)
        return "<no value>" if value is _MISSING or value is None else go_text(value)

    def _control(self, node: Block, dot: Any, names: dict[str, Any]) -> str:
        tokens, bound = list(node.expression), []
        if ":=" in tokens:
            at = tokens.index(":=")
            bound = [token for token in tokens[:at] if token != ","]
            tokens = tokens[at + 1 :]
        value = self._pipeline(tokens, dot, names)
        if node.keyword == "range":
            pairs = _pairs(value)
            if not pairs:
                return self._render(node.otherwise, dot, dict(names))
            out = []
            for key, item in pairs:
                inner = dict(names)
                if len(bound) == 1:
                    inner[bound[0]] = item
                elif len(bound) == 2:
                    inner[bound[0]], inner[bound[1]] = key, item
                out.append(self._render(node.body, item, inner))
            return "".join(out)
        if _truth(value):
            inner = dict(names)
            for name in bound:
                inner[name] = value
            return self._render(node.body, value if node.keyword == "with" else dot, inner)
        return self._render(node.otherwise, dot, dict(names))

    def _pipeline(self, tokens: list[str], dot: Any, names: dict[str, Any]) -> Any:
        value: Any = _MISSING
        for index, stage in enumerate(_split_tokens(tokens, "|")):
            value = self._call(stage, dot, names, [] if index == 0 else [value])
        return value

    def _call(self, tokens: list[str], dot: Any, names: dict[str, Any], last: list[Any]) -> Any:
        if not tokens:
            raise TemplateError(f"error parsing template {self.text}, missing value for command")
        words = self._operands(tokens, dot, names)
        head = tokens[0]
        if re.fullmatch(r"[A-Za-z]\w*", head) and head not in ("true", "false", "nil"):
            function = FUNCTIONS.get(head)
            if function is None:
                raise TemplateError(
                    f"error parsing template {self.text}, template: output:1: function "
                    f'"{head}" not defined'
                )
            try:
                return function(*words[1:], *last)
            except (TypeError, ValueError, KeyError, IndexError) as error:
                raise TemplateError(
                    f'error executing template "{self.text}": error calling {head}: {error}'
                ) from error
        return words[0]

    def _operands(self, tokens: list[str], dot: Any, names: dict[str, Any]) -> list[Any]:
        out: list[Any] = []
        at = 0
        while at < len(tokens):
            if tokens[at] == "(":
                depth, end = 1, at + 1
                while depth:
                    depth += {"(": 1, ")": -1}.get(tokens[end], 0)
                    end += 1
                out.append(self._pipeline(tokens[at + 1 : end - 1], dot, names))
                at = end
            else:
                out.append(self._value(tokens[at], dot, names))
                at += 1
        return out

    def _value(self, token: str, dot: Any, names: dict[str, Any]) -> Any:
        if token == ".":
            return dot
        if token.startswith("."):
            return self._fields(dot, token[1:].split("."), token)
        if token.startswith("$"):
            name, *fields = token.split(".")
            if name not in names:
                raise TemplateError(
                    f"error parsing template {self.text}, undefined variable {name}"
                )
            return self._fields(names[name], fields, token)
        if token[0] == '"':
            import json

            return json.loads(token)
        if token[0] == "`":
            return token[1:-1]
        if token in ("true", "false"):
            return token == "true"
        if re.fullmatch(r"-?\d+", token):
            return int(token)
        if re.fullmatch(r"-?\d+\.\d+", token):
            return float(token)
        return token

    def _fields(self, value: Any, fields: list[str], token: str) -> Any:
        for field in fields:
            if value is _MISSING or value is None:
                return _MISSING
            if not isinstance(value, dict):
                raise TemplateError(
                    f'error executing template "{self.text}": template: output:1: executing '
                    f'"output" at <{token}>: can\'t evaluate field {field} in type interface {{}}'
                )
            if field not in value and not self._allow_missing:
                at = self.text.find(token)
                raise MissingKey(self.text, at + len(token.split(".")[1]) + 1, token, field)
            value = value.get(field, _MISSING)
        return value


class MissingKey(TemplateError):
    def __init__(self, text: str, column: int, token: str, field: str) -> None:
        self.why = (
            f'template: output:1:{column}: executing "output" at <{token}>: map has no entry for '
            f'key "{field}"'
        )
        self.output = ""
        super().__init__(f'error executing template "{text}": {self.why}')


def _split(text: str) -> list[Any]:
    parts: list[Any] = []
    at = 0
    trim_next = False
    for match in _ACTION.finditer(text):
        before = text[at : match.start()]
        if trim_next:
            before = before.lstrip()
        if match.group(1):
            before = before.rstrip()
        if before:
            parts.append(before)
        inner = match.group(2).strip()
        parts.append([] if inner.startswith("/*") else _tokens(inner, text))
        trim_next, at = bool(match.group(3)), match.end()
    rest = text[at:]
    if "{{" in rest:
        raise TemplateError(f"error parsing template {text}, template: output:1: unclosed action")
    rest = rest.lstrip() if trim_next else rest
    if rest:
        parts.append(rest)
    return parts


def _tokens(text: str, whole: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            if not text[at:].strip():
                break
            raise TemplateError(
                f"error parsing template {whole}, template: output:1: unexpected {text[at:]!r}"
            )
        found.append(match.group(1))
        at = match.end()
    return found


def _split_tokens(tokens: list[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return [(key, value[key]) for key in sorted(value)]
    if isinstance(value, list):
        return list(enumerate(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return [(index, index) for index in range(value)]
    return []


def _truth(value: Any) -> bool:
    return value is not _MISSING and bool(value)


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key, _MISSING)
        elif value is not _MISSING:
            value = value[key]
    return value


def _printf(form: str, *values: Any) -> str:
    out, rest = [], list(values)
    for piece in re.split(r"(%[-+0 ]*\d*(?:\.\d+)?[vsdqfxt%])", form):
        if piece == "%%":
            out.append("%")
        elif piece.startswith("%") and len(piece) > 1:
            value = rest.pop(0) if rest else "%!(MISSING)"
            kind = piece[-1]
            if kind == "q":
                import json

                out.append(json.dumps(str(value)))
            elif kind in "dfx":
                out.append(piece % value)
            else:
                out.append((piece[:-1] + "s") % go_text(value))
        else:
            out.append(piece)
    return "".join(out)


def _base64(text: str) -> str:
    import base64

    return base64.b64decode(text).decode(errors="replace")


def _exists(value: Any, *keys: Any) -> bool:
    try:
        return _index(value, *keys) is not _MISSING
    except (KeyError, IndexError, TypeError):
        return False


FUNCTIONS: dict[str, Any] = {
    "len": lambda value: len(value),
    "index": _index,
    "print": lambda *values: " ".join(go_text(value) for value in values),
    "println": lambda *values: " ".join(go_text(value) for value in values) + "\n",
    "printf": _printf,
    "eq": lambda entry, *others: any(entry == other for other in others),
    "ne": lambda entry, two: entry != two,
    "lt": lambda entry, two: entry < two,
    "le": lambda entry, two: entry <= two,
    "gt": lambda entry, two: entry > two,
    "ge": lambda entry, two: entry >= two,
    "and": lambda *values: next((value for value in values if not _truth(value)), values[-1]),
    "or": lambda *values: next((value for value in values if _truth(value)), values[-1]),
    "not": lambda value: not _truth(value),
    "exists": _exists,
    "base64decode": _base64,
}
