"""Digits that somebody else wrote.

Job: a text of digits → a number, in bounded time. Pure.
"""

MOST_DIGITS = 40  # any number that is meant has fewer


def whole_number(text: str) -> int:
    """As int(), of ASCII digits with or without a sign; a longer text is as large as it gets, since
    Python reads only so many digits, in the square of their time. Raises ValueError."""
    if len(text) <= MOST_DIGITS:
        return int(text)
    digits = text.lstrip("+-")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("not a whole number")
    kept = digits.lstrip("0")
    number = int(kept or "0") if len(kept) <= MOST_DIGITS else 10**MOST_DIGITS
    return -number if text.startswith("-") else number
