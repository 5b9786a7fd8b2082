"""Difference between two objects, as upstream prints it in a refusal.

Job: old and new → the lines that differ, for messages about fields that may not change.
Invariant: equal objects give no lines.
"""

from typing import Any

from sampan.api.errors import value_text


def difference(old: Any, new: Any) -> str:
    """`-` is what was, `+` what was asked for."""
    lines: list[str] = []
    _walk(old, new, "", lines)
    return "".join(f"{line}\n" for line in lines)


def _walk(old: Any, new: Any, path: str, lines: list[str]) -> None:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            _walk(old.get(key), new.get(key), f"{path}.{key}" if path else str(key), lines)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            _walk(before, after, f"{path}[{index}]", lines)
    else:
        if old is not None:
            lines.append(f"- \t{path}: {value_text(old)}")
        if new is not None:
            lines.append(f"+ \t{path}: {value_text(new)}")
