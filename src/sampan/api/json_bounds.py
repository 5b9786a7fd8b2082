"""How many values a text of JSON may have before it is read.

Job: bytes → whether reading them would make too many lists, objects and fields. Making those holds
    the interpreter for everybody, in whichever thread it is done.
"""

from sampan.core.patterns import lazy_pattern

# Some 20 ms each.
MOST_BRACKETS, MOST_FIELDS = 100_000, 200_000
TOO_MANY = f"more than {MOST_BRACKETS} lists and objects, or {MOST_FIELDS} fields"
_TEXTS = lazy_pattern(rb'"[^"\\]*(?:\\.[^"\\]*)*"')


def has_too_many_values(body: bytes, times: int = 1) -> bool:
    """`times`: as many as so many bodies."""
    brackets, fields = times * MOST_BRACKETS, times * MOST_FIELDS
    if not _more(body, brackets, fields):
        return False
    if body.count(b'"') - body.count(b'\\"') > 2 * fields:
        return True
    return _more(_TEXTS.sub(b"", body), brackets, fields)  # a text may have what it likes


def _more(body: bytes, brackets: int, fields: int) -> bool:
    return body.count(b"[") + body.count(b"{") > brackets or body.count(b":") > fields
