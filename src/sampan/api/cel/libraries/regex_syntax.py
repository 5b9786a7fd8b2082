"""Regular expressions, as RE2 writes them, as a tree.

Job: the text of a pattern → nodes; what RE2 refuses is refused in its words.
Invariant: nothing is accepted that cannot be run in linear time: no look-around, no references.
"""

import unicodedata

from sampan.core.fast_dataclass import dataclass

MOST_REPEATS = 1000
MOST_DEPTH = 150  # of groups; RE2 allows more, our parser nests with them
_MAX = 0x10FFFF
Range = tuple[int, int]

_POSIX: dict[str, tuple[Range, ...]] = {
    name: tuple((ord(pair[0]), ord(pair[-1])) for pair in text.split())
    for name, text in {
        "alnum": "0-9 A-Z a-z", "alpha": "A-Z a-z", "ascii": "\x00-\x7f", "digit": "0-9",
        "graph": "!-~", "lower": "a-z", "punct": "!-/ :-@ [-` {-~", "upper": "A-Z",
        "word": "0-9 A-Z a-z _", "xdigit": "0-9 A-F a-f",
    }.items()
}  # fmt: skip
_POSIX |= {
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "print": ((32, 126),),
    "space": ((9, 13), (32, 32)),
}
_PERL: dict[str, tuple[Range, ...]] = {
    "d": _POSIX["digit"],
    "w": _POSIX["word"],
    "s": ((9, 10), (12, 13), (32, 32)),
}
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ANCHORS = {"A": "begin text", "z": "end text", "b": "word", "B": "not word"}


class NotRegex(ValueError):
    """RE2 would not take it."""

    def __init__(self, why: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {why}: `{where}`")


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of these, or of none of these."""

    ranges: tuple[Range, ...] = ()
    categories: tuple[tuple[str, bool], ...] = ()  # of Unicode, and whether it must not be one
    excluded: tuple[tuple[Range, ...], ...] = ()  # \D and the like inside of a class
    negated: bool = False
    folded: bool = False

    def contains(self, char: str) -> bool:
        if self.folded:
            forms = {char, char.lower(), char.upper()}
            found = any(self._lists(one) for one in forms if len(one) == 1)
        else:
            found = self._lists(char)
        return found is not self.negated

    def _lists(self, char: str) -> bool:
        code = ord(char)
        return (
            any(low <= code <= high for low, high in self.ranges)
            or any(_is_of(char, name) is not wrong for name, wrong in self.categories)
            or any(not any(low <= code <= high for low, high in one) for one in self.excluded)
        )


@dataclass(frozen=True, slots=True)
class Anchor:
    kind: str  # begin text, end text, begin line, end line, word, not word


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first that fits."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    part: "Node"
    least: int
    most: int | None
    greedy: bool


Node = Chars | Anchor | Sequence | Choice | Repeat
EMPTY = Sequence(())


def _is_of(char: str, name: str) -> bool:
    return name == "Any" or unicodedata.category(char).startswith(name)


def parse(pattern: str) -> Node:
    """Raises NotRegex."""
    parser = _Parser(pattern)
    found = parser.choice(0)
    if parser.at < len(pattern):
        raise NotRegex("unexpected )", pattern)
    return found


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0
        self._flags = frozenset[str]()

    def _next(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.pattern[at] if at < len(self.pattern) else ""

    def _starts(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def choice(self, depth: int) -> Node:
        if depth > MOST_DEPTH:
            raise NotRegex("expression nests too deeply", self.pattern)
        before = self._flags
        parts = [self._sequence(depth)]
        while self._next() == "|":
            self.at += 1
            parts.append(self._sequence(depth))
        self._flags = before  # flags end with their group
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self._next() not in ("", "|", ")"):
            if self._starts("\\Q"):
                parts += self._quoted()
                continue
            start = self.at
            part = self._atom(depth)
            if part is not None:
                parts.append(self._repeated(part, start))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quoted(self) -> list[Node]:
        end = self.pattern.find("\\E", self.at + 2)
        text = self.pattern[self.at + 2 : end if end >= 0 else None]
        self.at = end + 2 if end >= 0 else len(self.pattern)
        return [self._literal(one) for one in text]

    def _literal(self, char: str) -> Chars:
        return Chars(((ord(char), ord(char)),), folded="i" in self._flags)

    # One item

    def _atom(self, depth: int) -> Node | None:
        char = self._next()
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char in "*+?" or (char == "{" and self._count() is not None):
            raise NotRegex("missing argument to repetition operator", char)
        self.at += 1
        if char == ".":
            return Chars(() if "s" in self._flags else ((10, 10),), negated=True)
        if char == "^":
            return Anchor("begin line" if "m" in self._flags else "begin text")
        if char == "$":
            return Anchor("end line" if "m" in self._flags else "end text")
        return self._literal(char)

    def _group(self, depth: int) -> Node | None:
        start = self.at
        self.at += 1
        flags = self._flags
        if self._next() == "?":
            is_group = self._opening(start)
            if not is_group:
                return None  # (?i): for the rest of the group around it
        inner = self.choice(depth + 1)
        if self._next() != ")":
            raise NotRegex("missing closing )", self.pattern)
        self.at += 1
        self._flags = flags
        return inner

    def _opening(self, start: int) -> bool:
        """Of (?…: whether a group follows. Sets the flags."""
        for begin in ("?P<", "?<"):
            if self._starts(begin) and self._next(len(begin)) not in ("=", "!"):
                end = self.pattern.find(">", self.at)
                name = self.pattern[self.at + len(begin) : end]
                if end < 0 or not name.isidentifier() or not name.isascii():
                    raise NotRegex("invalid named capture", self.pattern[start:])
                self.at = end + 1
                return True
        self.at += 1
        on, sign = set(self._flags), True
        while self._next() not in ("", ":", ")"):
            char = self._next()
            self.at += 1
            if char == "-" and sign:
                sign = False
            elif char in "imsU":
                (on.add if sign else on.discard)(char)
            else:
                where = self.pattern[start : self.at]
                raise NotRegex("invalid or unsupported Perl syntax", where)
        if not self._next():
            raise NotRegex("missing closing )", self.pattern)
        self._flags = frozenset(on)
        self.at += 1
        return self.pattern[self.at - 1] == ":"

    # Repetition

    def _repeated(self, part: Node, start: int) -> Node:
        found = self._operator()
        if found is None:
            return part
        least, most, where = found
        greedy = "U" not in self._flags
        if self._next() == "?":
            self.at += 1
            greedy = not greedy
        begin = self.at
        if self._operator() is not None:
            raise NotRegex(
                "invalid nested repetition operator", where + self.pattern[begin : self.at]
            )
        if (most is not None and most < least) or max(least, most or 0) > MOST_REPEATS:
            raise NotRegex("invalid repeat count", where)
        return Repeat(part, least, most, greedy)

    def _operator(self) -> tuple[int, int | None, str] | None:
        char = self._next()
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if char and char in simple:
            self.at += 1
            return (*simple[char], char)
        counted = self._count() if char == "{" else None
        if counted is None:
            return None
        least, most, end = counted
        where = self.pattern[self.at : end]
        self.at = end
        return least, most, where

    def _count(self) -> tuple[int, int | None, int] | None:
        """`{2}`, `{2,}`, `{2,3}`; anything else in braces is text."""
        end = self.pattern.find("}", self.at)
        least, comma, most = self.pattern[self.at + 1 : max(end, 0)].partition(",")
        if end < 0 or not (least.isascii() and least.isdigit()) or len(least) > 9:
            return None
        if not comma:
            return int(least), int(least), end + 1
        if not most:
            return int(least), None, end + 1
        if not (most.isascii() and most.isdigit()) or len(most) > 9:
            return None
        return int(least), int(most), end + 1

    # Escapes and classes

    def _escape(self) -> Node:
        char = self._next(1)
        if char in _ANCHORS and char:
            self.at += 2
            return Anchor(_ANCHORS[char])
        if char == "C":
            self.at += 2
            return Chars((), negated=True)
        if char and char.lower() in _PERL:
            self.at += 2
            return Chars(_PERL[char.lower()], negated=char.isupper())
        if char in ("p", "P") and char:
            name, wrong = self._category()
            return Chars(categories=((name, wrong),))
        return self._literal(chr(self._code()))

    def _category(self) -> tuple[str, bool]:
        start, wrong = self.at, self._next(1) == "P"
        self.at += 2
        name = self._next()
        self.at += 1
        if name == "{":
            end = self.pattern.find("}", self.at)
            name = self.pattern[self.at : max(end, self.at)]
            self.at = end + 1 if end >= 0 else len(self.pattern)
        if name.startswith("^"):
            name, wrong = name[1:], not wrong
        known = {"Any"} | {
            first + second for first in "LMNPSZC" for second in ("", *"ultmondcepsfik")
        }
        if name not in known:
            raise NotRegex("invalid character class range", self.pattern[start : self.at])
        return name, wrong

    def _code(self) -> int:
        start, char = self.at, self._next(1)
        self.at += 2
        if not char:
            raise NotRegex("trailing backslash at end of expression", "")
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "x":
            return self._hexadecimal(start)
        if char in "01234567" and (char == "0" or self._next() in tuple("01234567")):
            digits = char
            while len(digits) < 3 and self._next() in tuple("01234567"):
                digits += self._next()
                self.at += 1
            return int(digits, 8)
        if char.isalnum() or ord(char) >= 128:
            raise NotRegex("invalid escape sequence", self.pattern[start : self.at])
        return ord(char)

    def _hexadecimal(self, start: int) -> int:
        if self._next() == "{":
            end = self.pattern.find("}", self.at)
            digits = self.pattern[self.at + 1 : max(end, 0)]
            self.at = end + 1 if end >= 0 else len(self.pattern)
        else:
            digits = self.pattern[self.at : self.at + 2]
            self.at += 2
            digits = digits if len(digits) == 2 else ""
        try:
            code = int(digits, 16) if digits.isalnum() else -1
        except ValueError:
            code = -1
        if not 0 <= code <= _MAX:
            raise NotRegex("invalid escape sequence", self.pattern[start : self.at])
        return code

    def _class(self) -> Chars:
        start = self.at
        self.at += 1
        negated = self._next() == "^"
        self.at += negated
        ranges: list[Range] = []
        categories: list[tuple[str, bool]] = []
        excluded: list[tuple[Range, ...]] = []
        first = True
        while self._next() != "]" or first:
            if not self._next():
                raise NotRegex("missing closing ]", self.pattern[start:])
            first = False
            if self._starts("[:") and ":]" in self.pattern[self.at + 2 :]:
                self._posix(ranges, excluded)
            elif self._next() == "\\" and self._next(1) in tuple("dDwWsS"):
                kind = self._next(1)
                self.at += 2
                known = _PERL[kind.lower()]
                if kind.isupper():
                    excluded.append(known)
                else:
                    ranges += known
            elif self._next() == "\\" and self._next(1) in ("p", "P"):
                categories.append(self._category())
            else:
                ranges.append(self._range())
        self.at += 1
        folded = "i" in self._flags
        return Chars(tuple(ranges), tuple(categories), tuple(excluded), negated, folded)

    def _posix(self, ranges: list[Range], excluded: list[tuple[Range, ...]]) -> None:
        end = self.pattern.index(":]", self.at) + 2
        whole = self.pattern[self.at : end]
        name = whole[2:-2]
        self.at = end
        if name.removeprefix("^") not in _POSIX:
            raise NotRegex("invalid character class range", whole)
        if name.startswith("^"):
            excluded.append(_POSIX[name[1:]])
        else:
            ranges += _POSIX[name]

    def _range(self) -> Range:
        start = self.at
        low = self._member()
        if self._next() == "-" and self._next(1) not in ("]", ""):
            self.at += 1
            high = self._member()
            if high < low:
                where = self.pattern[start : self.at]
                raise NotRegex("invalid character class range", where)
            return low, high
        return low, low

    def _member(self) -> int:
        if self._next() == "\\":
            return self._code()
        self.at += 1
        return ord(self.pattern[self.at - 1])
