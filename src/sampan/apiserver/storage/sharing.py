"""Shared values: equal parts of objects of one template are kept once.

Job: for JSON data that nobody changes any more, an equal value that somebody has already. Pure.
Invariant: what was handed out is never changed, by anybody: others hold it too.
Invariant: what is remembered is bounded in bytes, whatever is asked for.
Owner: whoever made it.
"""

import sys
from typing import Any

import orjson

from sampan.core.bounded import FlushedMemo

VALUE_BYTES = 8192  # longer ones are hardly ever equal, and would crowd out the others
INTERNED = 40  # characters: what is longer is an id, or a message
_EMPTY_DICT: dict[str, Any] = {}
SEEN = 16384  # texts of which only a mark is kept, until they come again


class Remembered:
    """What was found for a text, once it has come twice: most come never again, and their texts
    would take more memory than sharing saves. Two generations: what is asked for survives, the
    rest is forgotten."""

    def __init__(self, limit_bytes: int = 1 << 20) -> None:
        self._limit_bytes = limit_bytes  # of text, per generation
        self._young: dict[bytes, Any] = {}
        self._young_bytes = 0
        self._old: dict[bytes, Any] = {}
        self._seen: FlushedMemo[int, None] = FlushedMemo(SEEN)

    def get(self, text: bytes) -> Any:
        """None where nothing is remembered."""
        found = self._young.get(text)
        if found is None:
            found = self._old.get(text)
            if found is not None:
                self._put(text, found)
        return found

    def keep(self, text: bytes, value: Any) -> None:
        if self.comes_again(text):
            self._put(text, value)

    def comes_again(self, text: bytes) -> bool:
        """Whether it is known to have come before, and short enough to be remembered."""
        if len(text) > VALUE_BYTES:
            return False
        mark = hash(text)
        if mark in self._seen.known:
            return True
        self._seen.keep(mark, None)
        return False

    def _put(self, text: bytes, value: Any) -> None:
        if self._young_bytes >= self._limit_bytes:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        # What a serialiser made keeps its whole buffer; a copy is as long as it says.
        self._young[bytes(memoryview(text))] = value
        self._young_bytes += len(text)


class SharedValues:
    """Equal values as one object, from the second one on."""

    def __init__(self, limit_bytes: int = 1 << 20) -> None:
        self._known = Remembered(limit_bytes)

    def shared(self, value: Any, levels: int = 0) -> Any:
        """An equal value that others have too; else `value`, or, with `levels`, one whose parts are
        shared down to that depth: a list of which one item is unlike all others."""
        kind = type(value)
        if kind is str:
            return sys.intern(value) if len(value) <= INTERNED else value
        if kind is not dict and kind is not list:
            return value
        if not value:
            return _EMPTY_DICT if kind is dict else value
        text = orjson.dumps(value)
        found = self._known.get(text)
        if found is not None:
            return found
        if levels:
            value = self._with_shared_parts(value, levels - 1)
        self._known.keep(text, value)
        return value

    def _with_shared_parts(self, value: Any, levels: int) -> Any:
        """`value` itself where none of its parts became another."""
        shared = self.shared
        is_list = type(value) is list
        parts = list(value) if is_list else dict(value)
        same = True
        for at, item in enumerate(value) if is_list else value.items():
            kind = type(item)
            if kind is str and len(item) <= INTERNED:  # most are: a call for each would be the work
                other: Any = sys.intern(item)
            elif kind is dict or kind is list:
                other = shared(item, levels)
            else:
                continue
            if other is not item:
                parts[at], same = other, False
        return value if same else parts
