"""JSON for a command, which must start in no time.

Job: bytes to values and back; small ones by the standard library, which is there already, large
    ones by orjson, whose import takes as long as a request.
"""

import json
import sys
from typing import Any

LARGE_BYTES = 256 * 1024


def loads(data: bytes) -> Any:
    """Raises ValueError."""
    if len(data) < LARGE_BYTES and "orjson" not in sys.modules:
        return json.loads(data)
    import orjson

    return orjson.loads(data)


def dumps(value: Any) -> bytes:
    """In order, as kubectl sends its maps: what is wrong with a file is told in that order."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()
