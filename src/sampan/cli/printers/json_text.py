"""JSON as Go's encoder writes it: four spaces, `<`, `>` and `&` escaped.

Job: JSON data to text; the order of keys is the caller's (`go_order`) or the alphabet.
"""

import json
from typing import Any


def to_json(value: Any, *, ordered: bool = False) -> str:
    """With a newline at its end; `ordered` keeps the keys as they are."""
    text = json.dumps(value, indent=4, ensure_ascii=False, sort_keys=not ordered)
    return escape(text) + "\n"


def compact(value: Any, *, ordered: bool = True) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=not ordered)
    return escape(text)


def escape(text: str) -> str:
    for letter, code in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(letter, code)
    return text
