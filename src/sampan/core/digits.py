"""Whole numbers from foreign text.

Job: a text of digits → a number, in bounded time. Pure.
Invariant: nobody else asks a text whether it is digits: "²".isdigit() is true, int("²") fails, and
    so it does of some thousand digits.
"""

MOST_DIGITS = 40  # any number that is meant has fewer


def is_digits(text: str) -> bool:
    """int() takes it, and means what everybody means: ASCII digits, not too many of them."""
    return text.isdigit() and text.isascii() and len(text) <= MOST_DIGITS


def all_digits(text: str) -> bool:
    """As is_digits, of any length: for who says of a long one that it is out of range."""
    return text.isdigit() and text.isascii()


def number_up_to(most: int, text: str) -> int | None:
    """From 0 on: an id, a port, a length; else None."""
    if not is_digits(text):
        return None
    number = int(text)
    return number if number <= most else None


def whole_number(text: str) -> int:
    """As int(), of ASCII digits with or without a sign; a longer text is as large as it gets, since
    Python reads only so many digits, in the square of their time. Raises ValueError."""
    if len(text) <= MOST_DIGITS:
        return int(text)
    digits = text.lstrip("+-")
    if not all_digits(digits):
        raise ValueError("not a whole number")
    kept = digits.lstrip("0")
    number = int(kept or "0") if len(kept) <= MOST_DIGITS else 10**MOST_DIGITS
    return -number if text.startswith("-") else number
