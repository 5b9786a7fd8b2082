"""Small JSON files that a program of ours wrote, and that may be damaged by now.

Job: a file → what it says, or that it cannot be read. Blocking.
Invariant: whatever is in the file, nothing but Damaged comes out: whoever reads many leaves one of
    them out and names it, and no start fails for it.
"""

import json
from pathlib import Path
from typing import Any

MOST_BYTES = 16 << 20


class Damaged(Exception):
    """It says why. A file that is not there is damaged, too: whoever minds looks before."""


def json_object(path: Path) -> dict[str, Any]:
    """Raises Damaged."""
    try:
        return object_in(_content(path))
    except Damaged as error:
        raise Damaged(f"{path}: {error}") from error


def json_list(path: Path) -> list[Any]:
    """Raises Damaged."""
    found = _value_in(_content(path))
    if not isinstance(found, list):
        raise Damaged(f"{path}: it is no JSON list")
    return found


def object_in(data: bytes) -> dict[str, Any]:
    """Raises Damaged."""
    found = _value_in(data)
    if not isinstance(found, dict):
        raise Damaged("it is no JSON object")
    return found


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Damaged(str(error)) from error
    if len(data) > MOST_BYTES:
        raise Damaged(f"{path} is too large")
    return data


def _value_in(data: bytes) -> Any:
    try:
        found = json.loads(data)
        json.dumps(found, ensure_ascii=False).encode()  # half a character is none
    except (ValueError, RecursionError) as error:
        raise Damaged(f"it is no JSON: {str(error)[:200]}") from error
    return found
