"""Difference between two objects, as upstream prints it in a refusal.

Job: old and new → the lines that differ, for messages about fields that may not change.
Invariant: equal objects give no lines.
"""

import json
from typing import Any

from sampan.api.go_quoting import escape_html
from sampan.api.validation.internal_form import internal_form


def difference(kind: str, old: Any, new: Any) -> str:
    """A unified diff of both, as `kind` is printed (see internal_form)."""
    import difflib  # for refusals only

    before, after = (
        escape_html(json.dumps(internal_form(kind, each), indent=1, ensure_ascii=False))
        for each in (old, new)
    )
    lines = difflib.unified_diff(
        [f"{line}\n" for line in before.split("\n")], [f"{line}\n" for line in after.split("\n")]
    )
    return "".join(line for line in lines if not line.startswith(("--- ", "+++ ")))
