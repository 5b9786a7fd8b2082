"""Regular expressions in linear time: no text makes a pattern run for ever.

Job: RE2's patterns, run by RE2 itself; refusals in Go's words; what a look at a text costs.
Invariant: a look costs at most the text's length times the pattern's compiled steps, and is charged
    so.
Invariant: what is remembered of patterns is bounded, however many and however long they are.
"""

import functools
from collections.abc import Container, Iterator
from math import ceil
from typing import TYPE_CHECKING

from sampan.api.cel.language import cost
from sampan.core.bounded import FlushedMemo

if TYPE_CHECKING:
    import re2

MOST_PATTERNS = 128  # remembered
MOST_CHARACTERS = 64 * 1024  # of a pattern
MOST_BYTES = 1024 * 1024  # of a compiled pattern and of what it remembers of texts
# Compiled steps that RE2 takes in the time of one step of ours, where it has to follow all ways
# (10 ns each, and 200 ns); most patterns take a hundredth of that.
STEPS_PER_COST = 20
SHORT_TEXT, MOST_TEXTS = 64, 64  # that a pattern remembers its answer for
# What Go's syntax.Error says where RE2 says this.
_WORDS = {
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}


class NotRegex(ValueError):
    """RE2 would not take it."""

    def __init__(self, why: str, what: str) -> None:
        super().__init__(f"error parsing regexp: {why}: `{what}`")


class Regex:
    def __init__(self, pattern: "re2._Regexp") -> None:
        self._pattern = pattern
        self.steps: int = pattern.programsize
        # Short texts that it fits: they come again and again.
        self._fitting: FlushedMemo[str, None] = FlushedMemo(MOST_TEXTS)
        self.known: Container[str] = self._fitting.known

    def matches(self, text: str) -> bool:
        """Whether it fits anywhere in the text. In bytes: where is not asked, and counting
        characters takes longer than all the rest."""
        if text in self.known:
            return True
        fits = self._pattern.search(text.encode(errors="surrogatepass")) is not None
        if fits and len(text) <= SHORT_TEXT:
            self._fitting.keep(text, None)
        return fits

    def find(self, text: str) -> tuple[int, int] | None:
        """The first place where it fits, and how much of it by its own preferences."""
        found = self._pattern.search(text)
        return None if found is None else found.span()

    def find_all(self, text: str) -> Iterator[str]:
        last_end = -1
        for found in self._pattern.finditer(text):
            start, end = found.span()
            if end > start or start != last_end:
                yield text[start:end]  # as Go: no empty one right after another
            last_end = end


def compile_pattern(pattern: str) -> Regex:
    """Raises NotRegex."""
    if len(pattern) > MOST_CHARACTERS:
        raise NotRegex("expression too large", f"{pattern[:64]}…")
    return _compile_policy(pattern)


@functools.lru_cache(maxsize=MOST_PATTERNS)
def _compile_policy(pattern: str) -> Regex:
    import re2  # with the first pattern: a start has none

    try:
        return Regex(re2.compile(pattern, _options()))
    except re2.error as error:
        said = error.args[0] if error.args else b""
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        why, _, what = text.partition(": ")
        what = "" if why.startswith("trailing") else what or pattern
        raise NotRegex(_WORDS.get(why, why), what) from error
    except UnicodeEncodeError as error:
        raise NotRegex("invalid UTF-8", "") from error


@functools.cache
def _options() -> "re2.Options":
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # nobody asks for groups, and following them is slow
    options.max_mem = MOST_BYTES
    return options


def match_cost(text: object, pattern: object, *_rest: object) -> int:
    """As cel-go, which knows only how long both are; more where the pattern unfolds to more."""
    known = cost.match_cost(text, pattern)
    if not isinstance(text, str) or not isinstance(pattern, str):
        return known
    try:
        steps = compile_pattern(pattern).steps
    except NotRegex:
        return known  # the evaluation says so
    return max(known, ceil(steps * len(text) / STEPS_PER_COST))


def find_all_cost(text: object, pattern: object, *_rest: object) -> int:
    """Each of many finds may look far ahead."""
    size = len(text) if isinstance(text, str) else 0
    return match_cost(text, pattern) * (1 + size // 10_000)
