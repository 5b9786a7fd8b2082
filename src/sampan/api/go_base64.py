"""Base64 as Go's encoding/base64 reads it.

Job: the bytes of a text, or the byte at which it is none, in Go's words. Pure.
"""

import binascii

_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_LINE_ENDS = b"\r\n"


def decoded(text: str) -> bytes:
    """Raises ValueError. Line ends are skipped, padding is required."""
    plain = text.encode().translate(None, _LINE_ENDS)
    try:
        if len(plain) % 4:
            raise ValueError("a quantum is not full")
        return binascii.a2b_base64(plain, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        where = _bad_byte(text.encode())
        raise ValueError(f"illegal base64 data at input byte {where}") from error


def _bad_byte(text: bytes) -> int:
    """The first letter that cannot be; of letters that are too few, where their quantum begins."""
    count, at = 0, 0
    while at < len(text):
        letter = text[at]
        if letter in _LETTERS:
            count += 1
        elif letter == ord("="):
            return _after_padding(text, at, count % 4)
        elif letter not in _LINE_ENDS:
            return at
        at += 1
    return at - count % 4


def _after_padding(text: bytes, at: int, before: int) -> int:
    """`before`: letters of the quantum that the padding at `at` ends."""
    if before < 2:
        return at
    rest = [place for place in range(at + 1, len(text)) if text[place] not in _LINE_ENDS]
    if before == 2:
        if not rest:
            return len(text)
        if text[rest[0]] != ord("="):
            return rest[0] - 1
        rest = rest[1:]
    return rest[0] if rest else at
