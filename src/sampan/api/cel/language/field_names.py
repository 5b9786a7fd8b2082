"""Escaped field names, where a name is none in CEL.

Job: `foo-bar` ↔ `foo__dash__bar`, as Kubernetes writes the properties of typed objects.
Invariant: unescaping what was escaped gives the name back.
"""

import re

from sampan.core.patterns import lazy_pattern

KEYWORDS = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
    "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_CHARACTERS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_BACK = {escaped: plain for plain, escaped in _CHARACTERS.items()}
_NAME = lazy_pattern(r"[_a-zA-Z][_a-zA-Z0-9]*")


def escape(name: str) -> str | None:
    """The name that expressions use; None: they cannot name it at all."""
    if name in KEYWORDS:
        return f"__{name}__"
    made = re.sub(r"__|[./-]", lambda found: _CHARACTERS[found.group()], name)
    return made if _NAME.fullmatch(made) else None


def unescape(name: str) -> str:
    if "__" not in name:
        return name
    if name.startswith("__") and name.endswith("__") and name[2:-2] in KEYWORDS:
        return name[2:-2]
    return re.sub(r"__(?:underscores|dot|dash|slash)__", lambda found: _BACK[found.group()], name)
