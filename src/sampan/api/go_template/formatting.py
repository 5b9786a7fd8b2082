"""Go's fmt: Sprintf, Sprint, Sprintln over a template's values.

Job: verbs, flags, width, precision, argument indexes, and what fmt says of wrong ones. Pure.
"""

from typing import Any

from sampan.api.go_quoting import quoted
from sampan.api.go_template.values import NOTHING, Boxed, Byte, type_name
from sampan.api.go_text import go_float
from sampan.core.digits import number_up_to
from sampan.core.fast_dataclass import dataclass

MOST = 1_000_000  # of width and precision
_INTEGERS = {"b": 2, "o": 8, "O": 8, "d": 10, "x": 16, "X": 16}
_FLOATS = "beEfFgGxX"


@dataclass(frozen=True, slots=True)
class Flags:
    plus: bool = False
    minus: bool = False
    sharp: bool = False
    space: bool = False
    zero: bool = False
    width: int | None = None
    precision: int | None = None
    syntax: bool = False  # %#v: as Go would write it


def sprint(arguments: list[Any]) -> str:
    """Spaces only between two operands neither of which is a string."""
    out: list[str] = []
    was_text = True
    for at, value in enumerate(arguments):
        is_text = isinstance(_plain(value), str)
        if at and not is_text and not was_text:
            out.append(" ")
        out.append(_value(_plain(value), "v", Flags()))
        was_text = is_text
    return "".join(out)


def sprintln(arguments: list[Any]) -> str:
    return " ".join(_value(_plain(value), "v", Flags()) for value in arguments) + "\n"


def sprintf(form: str, arguments: list[Any]) -> str:
    return _Form(form, [_plain(value) for value in arguments]).text()


def _plain(value: Any) -> Any:
    if isinstance(value, Boxed):
        return value.value
    return None if value is NOTHING else value


class _Form:
    def __init__(self, form: str, arguments: list[Any]) -> None:
        self._form, self._arguments = form, arguments
        self._at = 0  # in the form
        self._number = 0  # of the next argument
        self._reordered = self._after_index = False
        self._good_index = True

    def text(self) -> str:
        out: list[str] = []
        while self._at < len(self._form):
            percent = self._form.find("%", self._at)
            end = len(self._form) if percent < 0 else percent
            out.append(self._form[self._at : end])
            self._at = end
            if percent < 0:
                break
            self._at += 1
            out.append(self._verb())
        if not self._reordered and self._number < len(self._arguments):
            rest = ", ".join(map(_with_type, self._arguments[self._number :]))
            out.append(f"%!(EXTRA {rest})")
        return "".join(out)

    def _verb(self) -> str:
        self._good_index, self._after_index = True, False
        flags = self._flags()
        self._index()
        bad: list[str] = []
        width, flags = self._width(flags, bad)
        precision = self._precision(bad)
        if not self._after_index:
            self._index()
        if self._at >= len(self._form):
            return "".join([*bad, "%!(NOVERB)"])
        verb = self._form[self._at]
        self._at += 1
        plus = flags["+"] and verb != "v"  # %+v is about the names of fields
        sharp = flags["#"] and verb != "v"
        chosen = Flags(
            plus, flags["-"], sharp, flags[" "], flags["0"], width, precision,
            syntax=flags["#"] and verb == "v",
        )  # fmt: skip
        return "".join([*bad, self._formatted(verb, chosen)])

    def _formatted(self, verb: str, flags: Flags) -> str:
        if verb == "%":
            return "%"
        if not self._good_index:
            return f"%!{verb}(BADINDEX)"
        if self._number >= len(self._arguments):
            return f"%!{verb}(MISSING)"
        value = self._arguments[self._number]
        self._number += 1
        return _value(value, verb, flags)

    def _flags(self) -> dict[str, bool]:
        flags = dict.fromkeys("+-# 0", False)
        while self._at < len(self._form) and self._form[self._at] in flags:
            flags[self._form[self._at]] = True
            self._at += 1
        return flags

    def _width(self, flags: dict[str, bool], bad: list[str]) -> tuple[int | None, dict[str, bool]]:
        width: int | None = None
        if self._form[self._at : self._at + 1] == "*":
            self._at += 1
            width = self._star()
            if width is None:
                bad.append("%!(BADWIDTH)")
            elif width < 0:
                width, flags = -width, {**flags, "-": True, "0": False}
            self._after_index = False
        else:
            width = self._digits()
            if self._after_index and width is not None:
                self._good_index = False
        return width, flags

    def _precision(self, bad: list[str]) -> int | None:
        if self._form[self._at : self._at + 1] != ".":
            return None
        self._at += 1
        if self._after_index:
            self._good_index = False
        self._index()
        if self._form[self._at : self._at + 1] == "*":
            self._at += 1
            precision = self._star()
            self._after_index = False
            if precision is None or precision < 0:
                bad.append("%!(BADPREC)")
                return None
            return precision
        return self._digits() or 0

    def _star(self) -> int | None:
        if self._number >= len(self._arguments):
            return None
        value = self._arguments[self._number]
        self._number += 1
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return value if is_whole and -MOST <= value <= MOST else None

    def _digits(self) -> int | None:
        begin = self._at
        while self._form[self._at : self._at + 1] and self._form[self._at] in "0123456789":
            self._at += 1
        text = self._form[begin : self._at]
        return min(int(text), MOST) if text else None

    def _index(self) -> None:
        """`[3]`: which argument comes next."""
        if self._form[self._at : self._at + 1] != "[":
            return
        self._reordered = True
        close = self._form.find("]", self._at)
        if close < 0:
            self._good_index = False
            self._at += 1
            return
        text = self._form[self._at + 1 : close]
        self._at = close + 1
        place = number_up_to(len(self._arguments), text)
        if place:
            self._number, self._after_index = place - 1, True
        else:
            self._good_index = False


def _with_type(value: Any) -> str:
    return "<nil>" if value is None else f"{type_name(value)}={_value(value, 'v', Flags())}"


def _bad(value: Any, verb: str, flags: Flags) -> str:
    if value is None:
        return f"%!{verb}(<nil>)"
    return f"%!{verb}({type_name(value)}={_value(value, 'v', flags)})"


def _value(value: Any, verb: str, flags: Flags) -> str:
    if value is None:
        if verb in "Tv":
            return _padded("<nil>", flags)
        return f"%!{verb}(<nil>)"
    if verb == "T":
        return _string(type_name(value), "s", flags)
    match value:
        case bool():
            return (
                _padded("true" if value else "false", flags)
                if verb in "tv"
                else _bad(value, verb, flags)
            )
        case int():
            return _integer(value, verb, flags)
        case float():
            return _float(value, verb, flags)
        case complex():
            return _complex(value, verb, flags)
        case str():
            return _string(value, verb, flags)
        case list() | dict():
            return _collection(value, verb, flags)
    return _bad(value, verb, flags)


def _collection(value: Any, verb: str, flags: Flags) -> str:
    if verb == "p":
        return "0xc000000000"
    if flags.syntax:
        return _go_syntax(value)
    if isinstance(value, dict):
        pairs = (
            f"{_value(key, verb, flags)}:{_inner(value[key], verb, flags)}" for key in sorted(value)
        )
        return f"map[{' '.join(pairs)}]"
    return f"[{' '.join(_inner(item, verb, flags) for item in value)}]"


def _inner(value: Any, verb: str, flags: Flags) -> str:
    return "<nil>" if value is None else _value(value, verb, flags)


def _go_syntax(value: Any) -> str:
    """As %#v."""
    match value:
        case None:
            return "interface {}(nil)"
        case bool():
            return "true" if value else "false"
        case Byte():
            return f"0x{int(value):x}"
        case float():
            return go_float(value)
        case str():
            return quoted(value)
        case dict():
            pairs = (f"{quoted(key)}:{_go_syntax(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{', '.join(pairs)}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return str(value)


def _padded(text: str, flags: Flags) -> str:
    if flags.width is None or len(text) >= flags.width:
        return text
    if flags.minus:
        return text.ljust(flags.width)
    return text.rjust(flags.width, "0" if flags.zero else " ")


# --- numbers


def _integer(value: int, verb: str, flags: Flags) -> str:
    is_byte = isinstance(value, Byte)
    if verb == "v":
        if flags.syntax and is_byte:
            return _padded(f"0x{int(value):x}", flags)
        verb, flags = "d", Flags(flags.plus, flags.minus, False, flags.space, flags.zero,
                                 flags.width, flags.precision)  # fmt: skip
    if verb in _INTEGERS:
        return _digits_of(int(value), verb, flags)
    letter = chr(value) if 0 <= value <= 0x10FFFF and not 0xD800 <= value < 0xE000 else "\ufffd"
    match verb:
        case "c":
            return _padded(letter, flags)
        case "q":
            return _padded(quoted(letter, "'", ascii_only=flags.plus), flags)
        case "U":
            return _padded(_unicode(int(value), letter, flags), flags)
    return _bad(value, verb, flags)


def _unicode(value: int, letter: str, flags: Flags) -> str:
    size = max(4, flags.precision or 0)
    text = f"U+{value & 0xFFFFFFFFFFFFFFFF:0{size}X}"
    return f"{text} '{letter}'" if flags.sharp and letter.isprintable() else text


def _digits_of(value: int, verb: str, flags: Flags) -> str:
    digits = _in_base(abs(value), _INTEGERS[verb])
    if verb == "X":
        digits = digits.upper()
    sign = "-" if value < 0 else "+" if flags.plus else " " if flags.space else ""
    if flags.precision is not None:
        if flags.precision == 0 and value == 0:
            return " " * (flags.width or 0)
        digits = digits.rjust(flags.precision, "0")
    elif flags.zero and not flags.minus:
        digits = digits.rjust((flags.width or 0) - len(sign), "0")
    text = sign + _with_base(digits, verb, flags)
    size = flags.width or 0
    return text.ljust(size) if flags.minus else text.rjust(size)


def _with_base(digits: str, verb: str, flags: Flags) -> str:
    if verb == "O":
        return f"0o{digits}"
    if flags.sharp and verb == "o":
        return digits if digits.startswith("0") else f"0{digits}"
    return f"0{verb}{digits}" if flags.sharp and verb in "bxX" else digits


def _in_base(value: int, base: int) -> str:
    return {2: f"{value:b}", 8: f"{value:o}", 10: str(value), 16: f"{value:x}"}[base]


def _float(value: float, verb: str, flags: Flags) -> str:
    if verb == "v":
        text = _float_text(value, "g", flags)
    elif verb in _FLOATS:
        text = _float_text(value, verb, flags)
    else:
        return _bad(value, verb, flags)
    if text.startswith("-"):
        sign, text = "-", text[1:]
    else:
        sign = "+" if flags.plus else " " if flags.space else ""
    if flags.zero and not flags.minus and flags.width is not None:
        return sign + text.rjust(flags.width - len(sign), "0")
    return _padded(sign + text, flags)


def _complex(value: complex, verb: str, flags: Flags) -> str:
    if verb != "v" and verb not in _FLOATS:
        return _bad(value, verb, flags)
    real = _float(value.real, verb, flags)
    with_sign = Flags(True, flags.minus, flags.sharp, flags.space, flags.zero, flags.width,
                      flags.precision)  # fmt: skip
    return f"({real}{_float(value.imag, verb if verb != 'v' else 'g', with_sign)}i)"


def _float_text(value: float, verb: str, flags: Flags) -> str:
    precision = flags.precision
    match verb:
        case "e" | "E" | "f" | "F":
            size = 6 if precision is None else precision
            text = f"{value:.{size}{verb.lower()}}"
            return text.upper() if verb == "E" else text
        case "g" | "G":
            if precision is None:
                text = go_float(value) if not flags.sharp else f"{value:#.6g}"
            else:
                text = f"{value:{'#' if flags.sharp else ''}.{max(precision, 1)}g}"
            return text.upper() if verb == "G" else text
        case "b":
            return _binary_float(value)
    return _hex_float(value, verb, precision)


def _binary_float(value: float) -> str:
    import math

    mantissa, exponent = math.frexp(value)
    return f"{int(mantissa * 2**53)}p{exponent - 53:+d}"


def _hex_float(value: float, verb: str, precision: int | None) -> str:
    text = value.hex().replace("0x1.", "0x1.").lower()
    mantissa, _, exponent = text.partition("p")
    head, _, digits = mantissa.partition(".")
    digits = digits.rstrip("0") if precision is None else digits[:precision].ljust(precision, "0")
    sign, number = exponent[0], exponent[1:].rjust(2, "0")
    text = f"{head}{'.' + digits if digits else ''}p{sign}{number}"
    return text.upper() if verb == "X" else text


# --- strings


def _string(text: str, verb: str, flags: Flags) -> str:
    if flags.precision is not None and verb in "svq":
        text = text[: flags.precision]
    match verb:
        case "v":
            return _padded(quoted(text) if flags.syntax else text, flags)
        case "s":
            return _padded(text, flags)
        case "q":
            raw = flags.sharp and "`" not in text and "\n" not in text and text.isprintable()
            shown = f"`{text}`" if raw else quoted(text, ascii_only=flags.plus)
            return _padded(shown, flags)
        case "x" | "X":
            return _padded(_hex_string(text, verb, flags), flags)
    return _bad(text, verb, flags)


def _hex_string(text: str, verb: str, flags: Flags) -> str:
    data = text.encode(errors="surrogateescape")
    if flags.precision is not None:
        data = data[: flags.precision]
    prefix = ("0X" if verb == "X" else "0x") if flags.sharp else ""
    form = "02X" if verb == "X" else "02x"
    if flags.space:
        return " ".join(prefix + format(byte, form) for byte in data)
    return (prefix if data else "") + "".join(format(byte, form) for byte in data)
