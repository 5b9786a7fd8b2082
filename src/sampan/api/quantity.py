"""Quantities: `500m`, `1.5Gi`, `2e3`; exact numbers with a suffix.

Job: parse, compare, add, and print them as the original does. Pure.
Invariant: a quantity is a whole number of billionths; what is finer is rounded away from zero.
Invariant: parsing what was printed gives the same amount, and prints the same text.
"""

import functools
import re
from enum import Enum

from sampan.core.digits import whole_number
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

NANO = 10**9
MOST_DIGITS = 1000  # of a number; more is noise
MOST_REMEMBERED = 64  # characters

_FORM = lazy_pattern(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX = {bits // 10: suffix for suffix, bits in _BINARY.items()} | {0: ""}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_MOST = 2**63 - 1
_FAST_DIGITS = 18  # what upstream keeps in an int64 with a scale
_LARGEST_EXPONENT = 400  # beyond it the number is noise, and 10**exponent would eat the machine

WRONG_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """The text is no quantity; the message is upstream's."""


class Format(Enum):
    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An amount and the way it likes to be printed; equal when the amounts are."""

    nanos: int
    format: Format = Format.DECIMAL_SI
    text: str = ""  # as it was written, where that needs no rewriting

    def __str__(self) -> str:
        return self.text or _print(self.nanos, self.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: "Quantity") -> bool:
        return self.nanos <= other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nanos + other.nanos, (self if self else other).format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nanos - other.nanos, (self if self else other).format)

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nanos, self.format)

    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _divided_up(self.nanos, NANO)

    def milli(self) -> int:
        """Thousandths, rounded away from zero: how CPU is counted."""
        return _divided_up(self.nanos, 10**6)

    def as_float(self) -> float:
        return self.nanos / NANO


ZERO = Quantity(0)


def from_value(units: int, form: Format = Format.DECIMAL_SI) -> Quantity:
    return Quantity(units * NANO, form)


def from_milli(thousandths: int, form: Format = Format.DECIMAL_SI) -> Quantity:
    return Quantity(thousandths * 10**6, form)


def parse(text: str) -> Quantity:
    """The quantity that a text stands for; QuantityError where it is none."""
    # The same few come with every pod; what is long is not worth keeping.
    return _parse(text) if len(text) <= MOST_REMEMBERED else _parse.__wrapped__(text)


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    if text == "0":
        return Quantity(0, text="0")
    form = _FORM.fullmatch(text)
    if form is None or not text:
        raise QuantityError(WRONG_FORM)
    sign, whole, fraction, suffix = form[1], form[2].lstrip("0") or "0", form[3] or "", form[4]
    if len(whole) + len(fraction) > MOST_DIGITS:
        raise QuantityError(WRONG_NUMBER)
    base, exponent, style = _suffix_of(suffix)
    if not form[2] and not fraction:
        # "Mi" alone reads as zero of something, as upstream; a bare sign too.
        return Quantity(0, style)
    amount = _amount(int(whole + fraction), base, exponent, len(fraction))
    if amount is None:
        raise QuantityError(WRONG_NUMBER)
    nanos, exact = amount
    if style is Format.BINARY_SI:
        nanos = min(nanos, _MOST * NANO)
    kept = text if exact and _is_canonical(whole, fraction, exponent, style) else ""
    return Quantity(-nanos if sign == "-" else nanos, _style_of(nanos, style), kept)


def to_milli(text: str) -> str:
    """What is finer than a thousandth is rounded up, away from zero, as defaults do."""
    if text[-1:] not in "nu":
        return text
    amount = parse(text)
    step = NANO // 1000
    nanos = -(-abs(amount.nanos) // step) * step
    return str(Quantity(-nanos if amount.nanos < 0 else nanos, amount.format))


def value_of(written: str | int | float) -> Quantity:
    """A quantity as JSON may hold it: text, or a bare number."""
    return parse(written.strip() if isinstance(written, str) else repr(written))


def canonical(written: str | int | float) -> str:
    """The text under which a quantity is stored."""
    return str(value_of(written))


def _suffix_of(suffix: str) -> tuple[int, int, Format]:
    """(base, exponent, format)."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], Format.DECIMAL_SI
    if suffix in _BINARY:
        return 2, _BINARY[suffix], Format.BINARY_SI
    if len(suffix) > 1 and suffix[0] in "eE":
        try:
            return 10, whole_number(suffix[1:]), Format.DECIMAL_EXPONENT
        except ValueError:
            pass
    raise QuantityError(WRONG_SUFFIX)


def _amount(digits: int, base: int, exponent: int, fraction: int) -> tuple[int, bool] | None:
    """(billionths, was exact); None where the number is beyond all sense."""
    if not digits:
        return 0, True
    if exponent > _LARGEST_EXPONENT:
        return None
    if base == 2:
        numerator, scale = digits << exponent, 9 - fraction
    else:
        numerator, scale = digits, max(9 + exponent - fraction, -_LARGEST_EXPONENT)
    if scale >= 0:
        return numerator * 10**scale, True
    nanos, rest = divmod(numerator, 10**-scale)
    return nanos + bool(rest), not rest


def _is_canonical(whole: str, fraction: str, exponent: int, style: Format) -> bool:
    """Whether upstream keeps the text as it was written: its quick test, not an exact one, so that
    `1.500` stays and `0.500` becomes `500m`."""
    digits = whole + fraction
    if style is Format.BINARY_SI:
        room = 15 - len(whole) - int(exponent * 3 / 10) - 1
        return not fraction and room >= 0 and int(whole) & 0x07 != 0
    scale = exponent - len(fraction)
    return (
        len(digits) <= _FAST_DIGITS
        and scale >= -9
        and scale % 3 == 0
        and not digits.endswith("000")
        and digits[0] != "0"
    )


def _style_of(nanos: int, style: Format) -> Format:
    if style is Format.BINARY_SI and 0 < nanos < NANO:
        return Format.DECIMAL_SI  # half a byte has no binary suffix
    return style


def _print(nanos: int, style: Format) -> str:
    if nanos == 0:
        return "0"
    units, rest = divmod(nanos, NANO)
    if style is Format.BINARY_SI and not rest and abs(units) >= 1024:
        amount, times = _without_factor(units, 1024)
        while times > 6:
            amount, times = amount * 1024, times - 1
        return f"{amount}{_BINARY_SUFFIX[times]}"
    amount, times = _without_factor(nanos, 10)
    exponent = times - 9
    amount *= 10 ** (exponent % 3)
    exponent -= exponent % 3
    if style is not Format.DECIMAL_EXPONENT and exponent in _DECIMAL_SUFFIX:
        return f"{amount}{_DECIMAL_SUFFIX[exponent]}"
    return f"{amount}e{exponent}" if exponent else str(amount)


def _without_factor(number: int, factor: int) -> tuple[int, int]:
    times = 0
    while number % factor == 0:
        number //= factor
        times += 1
    return number, times


def _divided_up(number: int, by: int) -> int:
    return -(-number // by) if number >= 0 else number // by
