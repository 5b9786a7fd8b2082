"""That the certificates of a directory were found good, and until when they are.

Job: remember it by the contents of all files there and by what was asked for, so that a start which
    finds the same looks at none of them.
Invariant: any other byte, file or wish, or a time at which something is old, and it is not known.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

FILE = ".known-good.json"


def is_noted(root: Path, wanted: Sequence[object], now: float) -> bool:
    try:
        noted = json.loads((root / FILE).read_bytes())
        return bool(noted["digest"] == _digest(root, wanted) and now < noted["until"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def note(root: Path, wanted: Sequence[object], until: float) -> None:
    """They are good, until then. A directory that may only be read is looked at each time."""
    noted = {"digest": _digest(root, wanted), "until": until}
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError), os.fdopen(os.open(root / FILE, flags, 0o600), "wb") as file:
        file.write(json.dumps(noted).encode())  # half of it would be as good as none


def _digest(root: Path, wanted: Sequence[object]) -> str:
    """`wanted` says of itself what makes it different from others."""
    found = hashlib.sha256(repr(list(wanted)).encode())
    for path in sorted(root.iterdir()):
        if not path.name.startswith("."):
            content = path.read_bytes() if path.is_file() else b""
            found.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()
