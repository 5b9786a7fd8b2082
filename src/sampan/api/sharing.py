"""Equal values as one object: what is made from one template is alike, and is kept once.

Job: for JSON data that nobody changes any more, an equal value that somebody has already. Pure.
Invariant: what was handed out is never changed, by anybody: others hold it too.
Invariant: what is remembered is bounded in bytes, whatever is asked for.
Owner: whoever made it.
"""

from typing import Any

import orjson

VALUE_BYTES = 8192  # longer ones are hardly ever equal, and would crowd out the others


class Remembered:
    """What was found for a text. Two generations: what is asked for again survives, the rest is
    forgotten."""

    def __init__(self, limit_bytes: int = 1 << 20) -> None:
        self._limit_bytes = limit_bytes  # of text, per generation
        self._young: dict[bytes, Any] = {}
        self._young_bytes = 0
        self._old: dict[bytes, Any] = {}

    def get(self, text: bytes) -> Any:
        """None where nothing is remembered."""
        found = self._young.get(text)
        if found is None:
            found = self._old.get(text)
            if found is not None:
                self.keep(text, found)
        return found

    def keep(self, text: bytes, value: Any) -> None:
        if len(text) > VALUE_BYTES:
            return
        if self._young_bytes >= self._limit_bytes:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[text] = value
        self._young_bytes += len(text)


class SharedValues:
    """Equal values as one object."""

    def __init__(self, limit_bytes: int = 1 << 20) -> None:
        self._known = Remembered(limit_bytes)

    def shared(self, value: Any) -> Any:
        """`value` itself, where nobody has an equal one."""
        if not value or not isinstance(value, dict | list):
            return value
        text = orjson.dumps(value)
        found = self._known.get(text)
        if found is None:
            self._known.keep(text, value)
            return value
        return found
