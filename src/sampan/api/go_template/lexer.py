"""Go's text/template, first step: text to items.

Job: cut a template into text and the words inside of its actions, as text/template/parse does.
Invariant: positions count bytes of UTF-8, lines count from 1: messages name both.
"""

from sampan.core.fast_dataclass import dataclass

LEFT, RIGHT = b"{{", b"}}"
_SPACES = b" \t\r\n"
_LEFT_COMMENT, _RIGHT_COMMENT = b"/*", b"*/"
KEYWORDS = (
    "block", "break", "continue", "define", "else", "end", "if", "nil", "range", "template", "with",
)  # fmt: skip
EOF = ""


@dataclass(frozen=True, slots=True)
class Item:
    kind: str  # text left right space field variable identifier keyword number … error eof
    value: str
    position: int
    line: int

    def __str__(self) -> str:
        from sampan.api.go_quoting import quoted

        if self.kind == "eof":
            return "EOF"
        if self.kind == "error":
            return self.value
        if self.kind in ("keyword", "dot", "nil"):
            return f"<{self.value}>"
        if len(self.value.encode()) > 10:
            return f"{quoted(self.value[:10])}..."
        return quoted(self.value)


class Lexer:
    def __init__(self, text: str) -> None:
        self._input = text.encode()
        self._position, self._start, self._line = 0, 0, 1
        self._start_line = 1
        self._depth = 0
        self._found: list[Item] = []

    def items(self) -> list[Item]:
        """All of them, up to the end or the first mistake."""
        while True:
            at = self._input.find(LEFT, self._position)
            self._take_text(at)
            if at < 0:
                self._found.append(self._emit("eof"))
                return self._found
            if not self._take_action():
                return self._found

    # --- outside of actions

    def _take_text(self, at: int) -> None:
        end = len(self._input) if at < 0 else at
        if end > self._position:
            kept = self._input[self._position : end]
            if at >= 0 and _has_left_trim(self._input[at + len(LEFT) :]):
                kept = kept.rstrip(_SPACES)
            if kept:
                text = kept.decode()
                self._found.append(Item("text", text, self._position, self._start_line))
            self._line += self._input[self._position : end].count(b"\n")
        self._position = end
        self._ignore()

    def _take_action(self) -> bool:
        """False: it is wrong."""
        begin = self._position
        self._position += len(LEFT)
        after = 2 if _has_left_trim(self._input[self._position :]) else 0
        if self._input.startswith(_LEFT_COMMENT, self._position + after):
            self._position += after
            self._ignore()
            return self._take_comment()
        self._found.append(Item("left", "{{", begin, self._start_line))
        self._line += self._input[self._position : self._position + after].count(b"\n")
        self._position += after
        self._ignore()
        self._depth = 0
        return self._take_inside()

    def _take_comment(self) -> bool:
        self._position += len(_LEFT_COMMENT)
        end = self._input.find(_RIGHT_COMMENT, self._position)
        if end < 0:
            return self._fail("unclosed comment")
        self._position = end + len(_RIGHT_COMMENT)
        trims = self._at_right()
        if trims is None:
            return self._fail("comment ends before closing delimiter")
        self._line += self._input[self._start : self._position].count(b"\n")
        self._end_action(trims)
        return True

    def _fail(self, why: str) -> bool:
        self._found.append(self._error(why))
        return False

    def _end_action(self, trims: bool) -> None:
        begin = self._position
        self._position += len(RIGHT) + (2 if trims else 0)
        if trims:
            rest = self._input[self._position :]
            self._position += len(rest) - len(rest.lstrip(_SPACES))
        self._line += self._input[begin : self._position].count(b"\n")
        self._ignore()

    def _at_right(self) -> bool | None:
        """Whether the closing delimiter here trims; None where there is none."""
        rest = self._input[self._position : self._position + 4]
        if _has_right_trim(rest) and rest[2:4] == RIGHT:
            return True
        return False if rest.startswith(RIGHT) else None

    # --- inside of an action

    def _take_inside(self) -> bool:
        while True:
            trims = self._at_right()
            if trims is not None:
                if self._depth:
                    return self._fail("unclosed left paren")
                place = self._position + (2 if trims else 0)
                self._found.append(Item("right", "}}", place, self._start_line))
                self._end_action(trims)
                return True
            item = self._word()
            if item is not None:
                self._found.append(item)
                if item.kind == "error":
                    return False

    def _word(self) -> Item | None:
        letter = self._next()
        if letter == EOF:
            return self._error("unclosed action")
        if letter in " \t\r\n":
            return self._space()
        match letter:
            case "=":
                return self._emit("assign")
            case ":":
                if self._next() != "=":
                    return self._error("expected :=")
                return self._emit("declare")
            case "|":
                return self._emit("pipe")
            case '"':
                return self._quoted('"', "string", "unterminated quoted string")
            case "'":
                return self._quoted("'", "char constant", "unterminated character constant")
            case "`":
                return self._raw()
            case "$":
                return self._name("variable")
            case "(":
                self._depth += 1
                return self._emit("left paren")
            case ")":
                self._depth -= 1
                if self._depth < 0:
                    return self._error("unexpected right paren")
                return self._emit("right paren")
        return self._other(letter)

    def _other(self, letter: str) -> Item:
        if letter == "." and not "0" <= (self._peek() or " ") <= "9":
            return self._name("field")
        if letter in ".+-" or "0" <= letter <= "9":
            self._back(letter)
            return self._number()
        if _is_alphanumeric(letter):
            self._back(letter)
            return self._identifier()
        if letter.isascii() and letter.isprintable():
            return self._emit("char")
        return self._error(f"unrecognized character in action: {unicode_text(letter)}")

    def _space(self) -> Item | None:
        count = 1
        while (self._peek() or "x") in " \t\r\n":
            self._next()
            count += 1
        before = self._input[self._position - 1 : self._position + 3]
        if _has_right_trim(before) and before[2:4] == RIGHT:
            self._position -= 1
            if count == 1:
                self._start = self._position
                return None
        return self._emit("space")

    def _name(self, kind: str) -> Item:
        if self._at_end_of_word():
            return self._emit("dot" if kind == "field" else "variable")
        while _is_alphanumeric(self._peek()):
            self._next()
        if not self._at_end_of_word():
            return self._bad_letter()
        return self._emit(kind)

    def _identifier(self) -> Item:
        while _is_alphanumeric(self._peek()):
            self._next()
        if not self._at_end_of_word():
            return self._bad_letter()
        word = self._input[self._start : self._position].decode()
        if word in KEYWORDS:
            return self._emit("nil" if word == "nil" else "keyword")
        return self._emit("bool" if word in ("true", "false") else "identifier")

    def _bad_letter(self) -> Item:
        return self._error(f"bad character {unicode_text(self._peek())}")

    def _at_end_of_word(self) -> bool:
        letter = self._peek()
        if letter == EOF or letter in " \t\r\n.,|:)(":
            return True
        return self._input.startswith(RIGHT, self._position)

    def _quoted(self, end: str, kind: str, problem: str) -> Item:
        while True:
            letter = self._next()
            if letter == "\\":
                letter = self._next()
                if letter not in (EOF, "\n"):
                    continue
            if letter in (EOF, "\n"):
                return self._error(problem)
            if letter == end:
                return self._emit(kind)

    def _raw(self) -> Item:
        while True:
            letter = self._next()
            if letter == EOF:
                return self._error("unterminated raw quoted string")
            if letter == "`":
                return self._emit("raw string")

    def _number(self) -> Item:
        from sampan.api.go_quoting import quoted

        good = self._scan_number()
        if good and self._peek() in ("+", "-"):
            good = self._scan_number() and self._input[self._position - 1 : self._position] == b"i"
            if good:
                return self._emit("complex")
        if not good:
            text = self._input[self._start : self._position].decode()
            return self._error(f"bad number syntax: {quoted(text)}")
        return self._emit("number")

    def _scan_number(self) -> bool:
        self._accept("+-")
        digits = "0123456789_"
        if self._accept("0"):
            if self._accept("xX"):
                digits = "0123456789abcdefABCDEF_"
            elif self._accept("oO"):
                digits = "01234567_"
            elif self._accept("bB"):
                digits = "01_"
        self._accept_all(digits)
        if self._accept("."):
            self._accept_all(digits)
        exponent = {11: "eE", 23: "pP"}.get(len(digits))
        if exponent and self._accept(exponent):
            self._accept("+-")
            self._accept_all("0123456789_")
        self._accept("i")
        if _is_alphanumeric(self._peek()):
            self._next()
            return False
        return True

    # --- letters

    def _accept(self, letters: str) -> bool:
        letter = self._peek()
        if letter != EOF and letter in letters:
            self._next()
            return True
        return False

    def _accept_all(self, letters: str) -> None:
        while self._accept(letters):
            pass

    def _peek(self) -> str:
        if self._position >= len(self._input):
            return EOF
        first = self._input[self._position]
        size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        return self._input[self._position : self._position + size].decode()

    def _next(self) -> str:
        letter = self._peek()
        self._position += len(letter.encode())
        self._line += letter == "\n"
        return letter

    def _back(self, letter: str) -> None:
        self._position -= len(letter.encode())

    def _emit(self, kind: str) -> Item:
        value = self._input[self._start : self._position].decode()
        item = Item(kind, value, self._start, self._start_line)
        self._ignore()
        return item

    def _error(self, why: str) -> Item:
        return Item("error", why, self._start, self._start_line)

    def _ignore(self) -> None:
        self._start, self._start_line = self._position, self._line


def unicode_text(letter: str) -> str:
    """As Go's %#U."""
    code = ord(letter) if letter else 0xFFFFFFFF
    if not letter:
        return "U+FFFFFFFFFFFFFFFF"
    return f"U+{code:04X} '{letter}'" if letter.isprintable() else f"U+{code:04X}"


def _has_left_trim(rest: bytes) -> bool:
    return rest[:1] == b"-" and rest[1:2] in (b" ", b"\t", b"\r", b"\n")


def _has_right_trim(rest: bytes) -> bool:
    return rest[:1] in (b" ", b"\t", b"\r", b"\n") and rest[1:2] == b"-"


def _is_alphanumeric(letter: str) -> bool:
    import unicodedata

    if letter == EOF:
        return False
    return letter == "_" or letter.isalpha() or unicodedata.category(letter) == "Nd"
