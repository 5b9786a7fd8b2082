"""Regular expressions that are compiled when they are first used.

Job: a pattern of a module, which its import does not pay for (0.1 to 1 ms each; of those that a
    start imports it uses one in four).
Invariant: for who calls its methods it is as `re.compile` would have made it.
"""

import re
from typing import Any, TypeVar, cast

Text = TypeVar("Text", str, bytes)


class _Lazy:
    def __init__(self, text: Any, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        """Of what was not asked for yet; from now on it is at hand."""
        value = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, value)
        return value


def lazy_pattern(text: Text, flags: int = 0) -> "re.Pattern[Text]":
    return cast("re.Pattern[Text]", _Lazy(text, flags))
