"""The string formats that a schema may ask for, as upstream's registry of formats checks them.

Job: format name → does this text have it? Pure.
Invariant: a format that nobody knows is not checked; the definition's author was warned.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address, ip_network
from urllib.parse import urlsplit

from sampan.core.digits import is_digits
from sampan.core.durations import DurationError, parse_duration

_UUID = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}$"
_PATTERNS = {
    "bsonobjectid": r"^[0-9a-fA-F]{24}$",
    "creditcard": r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|"
    r"3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$",
    "hexcolor": r"^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
    "hostname": r"^[a-zA-Z0-9\u0080-\U0010ffff](?:(?:[a-zA-Z0-9\u0080-\U0010ffff-]{0,61})"
    r"[a-zA-Z0-9\u0080-\U0010ffff])?(?:\.[a-zA-Z0-9\u0080-\U0010ffff]"
    r"(?:[a-zA-Z0-9\u0080-\U0010ffff-]{0,61}[a-zA-Z0-9\u0080-\U0010ffff])?)*\.?$",
    "isbn10": r"^(?:\d{9}[\dXx])$",
    "isbn13": r"^(?:\d{13})$",
    "k8s-long-name": r"^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$",
    "k8s-short-name": r"^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$",
    "mac": r"^[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4,6}[0-9a-fA-F]{2}$|"
    r"^(?:[0-9a-fA-F]{4}\.){2,3}[0-9a-fA-F]{4}$",
    "rgbcolor": r"^rgb\(\s*(?:\d{1,3}\s*,\s*){2}\d{1,3}\s*\)$",
    "ssn": r"^\d{3}[- ]?\d{2}[- ]?\d{4}$",
    "uuid": _UUID % ("[0-9a-f]", "[0-9a-f]"),
    "uuid3": _UUID % ("3", "[0-9a-f]"),
    "uuid4": _UUID % ("4", "[89ab]"),
    "uuid5": _UUID % ("5", "[89ab]"),
}
# Texts: each is compiled when it is first asked for.
_WORDED = (
    r"(?:\d+(?:\.\d+)?\s*(?:nanoseconds?|nano|ns|microseconds?|micros?|us|µs|milliseconds?|"
    r"millis?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|wks?|w)\s*)+"
)
_TIME = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:[Zz]|[+-]\d\d:?\d\d)?"
_EMAIL = r"[^\s@<>()\[\],;:\"\\]+@[^\s@<>()\[\],;:\"\\]+"

Test = Callable[[str], bool]


def _is_time(text: str) -> bool:
    if re.fullmatch(_TIME, text, re.ASCII) is None:
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _is_address(kind: type[IPv4Address] | type[IPv6Address]) -> Test:
    def test(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return test


def _is_cidr(text: str) -> bool:
    if "/" not in text:
        return False
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return is_digits(text.rpartition("/")[2])


def _is_base64(text: str) -> bool:
    try:
        b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (NotBase64, ValueError):
        return False
    return True


def _is_uri(text: str) -> bool:
    """As Go's ParseRequestURI: absolute, or a path from the root."""
    if not text or any(ord(item) < 0x21 or ord(item) == 0x7F for item in text):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except DurationError:
        return re.fullmatch(_WORDED, text) is not None
    return True


def _is_isbn(text: str) -> bool:
    return bool(_TESTS["isbn10"](text) or _TESTS["isbn13"](text))


def _matches(pattern: str) -> Test:
    """Compiled when it is first asked for: most definitions use none of these."""
    return lambda text: re.match(pattern, text) is not None


_TESTS: dict[str, Test] = {
    **{name: _matches(pattern) for name, pattern in _PATTERNS.items()},
    "byte": _is_base64,
    "cidr": _is_cidr,
    "date": _is_date,
    "date-time": _is_time,
    "datetime": _is_time,
    "duration": _is_duration,
    "email": lambda text: re.fullmatch(_EMAIL, text) is not None,
    "ipv4": _is_address(IPv4Address),
    "ipv6": _is_address(IPv6Address),
    "isbn": _is_isbn,
    "password": lambda _text: True,
    "uri": _is_uri,
}
# Formats of numbers say how wide a Go type is; they are known, and no text has them.
NUMBER_FORMATS = frozenset({"int32", "int64", "float", "double"})


def test_of(format_name: str) -> Test | None:
    return _TESTS.get(format_name)


def is_known(format_name: str) -> bool:
    return format_name in _TESTS or format_name in NUMBER_FORMATS
